// SPDX-License-Identifier: Apache-2.0
#include "runtime/im2row.hpp"

#include <cstring>

namespace qtn::runtime {
namespace {

/// Whole 16-byte pieces: faster than memcpy for the short runs here. What overshoots is overwritten by the next run or
/// lies in the slack after the last row; sources have the same slack.
inline void copy_run(std::uint8_t *to, const std::uint8_t *from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 16) std::memcpy(to + i, from + i, 16);
}

}  // namespace

void Im2Row::fill(std::uint8_t *rows, std::ptrdiff_t ld, const std::uint8_t *image, std::int64_t first,
                  std::int64_t count) const {
  const std::int64_t kh = window.kernel[0], kw = window.kernel[1];
  const bool joined = window.dilation[1] == 1 && x.pixel == channels;  // taps of one row are one run of bytes
  std::int64_t oy = first / window.out[1], ox = first % window.out[1];
  for (std::int64_t r = 0; r < count; ++r, rows += ld) {
    const std::int64_t y0 = oy * window.stride[0] - window.pad_begin[0],
                       x0 = ox * window.stride[1] - window.pad_begin[1];
    const ops::Span taps = window.taps(1, ox);
    const bool inside = taps.begin == 0 && taps.end == kw;
    std::uint8_t *to = rows;
    for (std::int64_t ky = 0; ky < kh; ++ky) {
      const std::int64_t iy = y0 + ky * window.dilation[0];
      if (iy < 0 || iy >= x.h || taps.begin >= taps.end) {
        std::memset(to, zero_point, static_cast<std::size_t>(kw * channels));
        to += kw * channels;
        continue;
      }
      const std::uint8_t *row = image + iy * x.w * x.pixel;
      if (inside && joined) {
        copy_run(to, row + x0 * x.pixel, kw * channels);
        to += kw * channels;
        continue;
      }
      for (std::int64_t kx = 0; kx < kw; ++kx, to += channels) {
        if (kx < taps.begin || kx >= taps.end)
          std::memset(to, zero_point, static_cast<std::size_t>(channels));
        else
          copy_run(to, row + (x0 + kx * window.dilation[1]) * x.pixel, channels);
      }
    }
    if (++ox == window.out[1]) {
      ox = 0;
      ++oy;
    }
  }
}

}  // namespace qtn::runtime
