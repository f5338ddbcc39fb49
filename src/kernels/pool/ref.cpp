// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

namespace qtn::kernels::pool_ref {
namespace {

/// y[p][c] = finish(fold of `merge` over the windows)
template <class Merge, class Finish>
void for_each(const PoolArgs &args, Merge merge, Finish finish) {
  for (std::size_t p = 0; p < args.pixels; ++p) {
    std::uint8_t *y = args.y + static_cast<std::ptrdiff_t>(p) * args.ldy;
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(p) * args.pixel_step;
    for (std::size_t c = 0; c < args.channels; ++c) {
      std::int32_t v = 0;
      for (std::size_t w = 0; w < args.window_count; ++w)
        v = merge(v, std::int32_t{args.windows[w][at + static_cast<std::ptrdiff_t>(c)]});
      y[c] = finish(v);
    }
  }
}

}  // namespace

void max(const PoolArgs &args) {
  for_each(
      args, [](std::int32_t a, std::int32_t b) { return a > b ? a : b; },
      [](std::int32_t v) { return static_cast<std::uint8_t>(v); });
}

void average(const PoolArgs &args) {
  const std::int32_t offset = static_cast<std::int32_t>(args.window_count) * args.x_zero;
  for_each(
      args, [](std::int32_t a, std::int32_t b) { return a + b; },
      [&](std::int32_t v) { return requantize(v - offset, args.multiplier, args.range); });
}

}  // namespace qtn::kernels::pool_ref
