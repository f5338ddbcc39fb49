// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lut/lut.hpp"

namespace qtn::kernels {
namespace {

/// look(y, x) for each row.
template <class Look>
void each_row(const LutArgs &args, const Look &look) {
  for (std::size_t r = 0; r < args.rows; ++r) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(r) * args.row;
    look(args.y + at, args.x + at);
  }
}

}  // namespace
}  // namespace qtn::kernels
