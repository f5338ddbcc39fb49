// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/rows.hpp"

namespace qtn::kernels::lut_ref {

void run(const LutArgs &args) {
  each_row(args, [&](std::uint8_t *y, const std::uint8_t *x) {
    for (std::size_t i = 0; i < args.columns; ++i) y[i] = args.table[x[i]];
  });
}

}  // namespace qtn::kernels::lut_ref
