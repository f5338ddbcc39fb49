// SPDX-License-Identifier: Apache-2.0
#include "runtime/im2row.hpp"

#include <cstring>

namespace qtn::runtime {
namespace {

/// The first and the last piece of a size, which may overlap.
template <std::size_t size>
void copy_ends(std::uint8_t *to, const std::uint8_t *from, std::int64_t bytes) {
  constexpr auto kSize = static_cast<std::int64_t>(size);
  std::memcpy(to, from, size);
  std::memcpy(to + bytes - kSize, from + bytes - kSize, size);
}

/// Faster than memcpy for the short runs here. Reads nothing else: an image may be the caller's, and end with a page.
inline void copy_run(std::uint8_t *to, const std::uint8_t *from, std::int64_t bytes) {
  if (bytes >= 16) {
    for (std::int64_t i = 0; i + 16 < bytes; i += 16) std::memcpy(to + i, from + i, 16);
    std::memcpy(to + bytes - 16, from + bytes - 16, 16);
    return;
  }
  if (bytes >= 8) return copy_ends<8>(to, from, bytes);
  if (bytes >= 4) return copy_ends<4>(to, from, bytes);
  for (std::int64_t i = 0; i < bytes; ++i) to[i] = from[i];
}

}  // namespace

void Im2Row::fill(std::uint8_t *rows, std::ptrdiff_t ld, const std::uint8_t *image, std::int64_t first,
                  std::int64_t count) const {
  const std::int64_t lines = window.kernel[2] * window.kernel[0], kw = window.kernel[1];
  const bool joined = window.dilation[1] == 1 && x.pixel == channels;  // taps of one row are one run of bytes
  const auto begin = [&](std::size_t axis, std::int64_t o) { return o * window.stride[axis] - window.pad_begin[axis]; };
  std::int64_t ox = first % window.out[1], oy = first / window.out[1] % window.out[0],
               oz = first / window.out[1] / window.out[0];
  for (std::int64_t r = 0; r < count; ++r, rows += ld) {
    const std::int64_t z0 = begin(2, oz), y0 = begin(0, oy), x0 = begin(1, ox);
    const ops::Span taps = window.taps(1, ox);
    const bool inside = taps.begin == 0 && taps.end == kw;
    std::uint8_t *to = rows;
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::int64_t iz = z0 + line / window.kernel[0] * window.dilation[2],
                         iy = y0 + line % window.kernel[0] * window.dilation[0];
      const bool outside = iy < 0 || iy >= window.in[0] || iz < 0 || iz >= window.in[2];
      if (outside || taps.begin >= taps.end) {
        std::memset(to, zero_point, static_cast<std::size_t>(kw * channels));
        to += kw * channels;
        continue;
      }
      const std::uint8_t *row = image + (iz * window.in[0] + iy) * x.w * x.pixel;
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
    if (++ox < window.out[1]) continue;
    ox = 0;
    if (++oy < window.out[0]) continue;
    oy = 0;
    ++oz;
  }
}

}  // namespace qtn::runtime
