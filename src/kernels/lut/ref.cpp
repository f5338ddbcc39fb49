// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/lut.hpp"

namespace qtn::kernels::lut_ref {

void run(const LutArgs &args) {
  for (std::size_t r = 0; r < args.rows; ++r) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(r) * args.row;
    for (std::size_t i = 0; i < args.columns; ++i)
      args.y[at + static_cast<std::ptrdiff_t>(i)] = args.table[args.x[at + static_cast<std::ptrdiff_t>(i)]];
  }
}

}  // namespace qtn::kernels::lut_ref
