// SPDX-License-Identifier: Apache-2.0
// Output rows of depthwise convolutions and pools, cut into runs of pixels whose windows lie alike.
#pragma once

#include "ops/window.hpp"
#include "runtime/step.hpp"

namespace qtn::runtime {

/// Calls body(ox, count, taps) from left to right: pixels at the borders one by one, those between whose windows lie inside
/// the row as one run.
template <class Body>
void for_runs(const ops::Window &w, Body &&body) {
  const std::int64_t out = w.out[1];
  for (std::int64_t ox = 0; ox < out;) {
    const ops::Span taps = w.taps(1, ox);
    std::int64_t end = ox + 1;
    if (taps.begin == 0 && taps.end == w.kernel[1])
      while (end < out && w.taps(1, end).begin == 0 && w.taps(1, end).end == w.kernel[1]) ++end;
    body(ox, end - ox, taps);
    ox = end;
  }
}

/// The first byte of the pixel that tap (ky, kx) of output (oy, ox) reads.
inline const std::uint8_t *tap_pixel(const std::uint8_t *image, const Picture &x, const ops::Window &w, std::int64_t oy,
                                     std::int64_t ox, std::int64_t ky, std::int64_t kx) {
  const std::int64_t iy = oy * w.stride[0] - w.pad_begin[0] + ky * w.dilation[0];
  const std::int64_t ix = ox * w.stride[1] - w.pad_begin[1] + kx * w.dilation[1];
  return image + (iy * x.w + ix) * x.pixel;
}

}  // namespace qtn::runtime
