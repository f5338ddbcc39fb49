// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/lut.hpp"

namespace qtn::kernels::lut_ref {

void run(std::uint8_t *y, const std::uint8_t *x, std::size_t count, const std::uint8_t *table) {
  for (std::size_t i = 0; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace qtn::kernels::lut_ref
