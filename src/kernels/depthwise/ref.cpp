// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/depthwise/depthwise.hpp"

namespace qtn::kernels::depthwise_ref {
namespace {

/// bias[channels], multiplier[channels], then the weights [taps][channels].
struct Packed {
  std::int32_t *bias;
  float *multiplier;
  std::int8_t *w;

  Packed(const void *packed, std::size_t channels)
      : bias(static_cast<std::int32_t *>(const_cast<void *>(packed))),
        multiplier(reinterpret_cast<float *>(bias + channels)),
        w(reinterpret_cast<std::int8_t *>(multiplier + channels)) {}
};

std::size_t taps(const DepthwiseWindow &window) {
  return static_cast<std::size_t>(window.kernel[0] * window.kernel[1]);
}

constexpr std::size_t kBlock = 64;  // channels whose sums are kept at once

/// Channels [first, first + count) of output (r, c), each by convert(sum, multiplier).
template <class Y, class Convert>
void run_block(const DepthwiseArgs &args, std::ptrdiff_t r, std::ptrdiff_t c, std::size_t first, std::size_t count,
               Convert convert) {
  const Packed packed(args.packed, args.channels);
  const DepthwiseWindow &win = args.window;
  std::uint32_t acc[kBlock];  // sums that fit may pass through others that do not: they wrap there and back
  std::memcpy(acc, packed.bias + first, count * sizeof(std::int32_t));
  const std::int8_t *w = packed.w + first;
  for (std::ptrdiff_t ky = 0; ky < win.kernel[0]; ++ky)
    for (std::ptrdiff_t kx = 0; kx < win.kernel[1]; ++kx, w += args.channels) {
      const std::ptrdiff_t iy = r * win.stride[0] - win.pad[0] + ky * win.dilation[0];
      const std::ptrdiff_t ix = c * win.stride[1] - win.pad[1] + kx * win.dilation[1];
      if (iy >= 0 && iy < args.height && ix >= 0 && ix < args.width) {
        const std::uint8_t *x = args.x + iy * args.x_row + ix * args.x_pixel + first;
        for (std::size_t i = 0; i < count; ++i) acc[i] += static_cast<std::uint32_t>(x[i] * w[i]);
      } else {
        for (std::size_t i = 0; i < count; ++i) acc[i] += static_cast<std::uint32_t>(args.outside * w[i]);
      }
    }
  Y *y = static_cast<Y *>(args.y) + r * args.y_row + c * args.y_pixel + first;
  for (std::size_t i = 0; i < count; ++i)
    y[i] = convert(static_cast<std::int32_t>(acc[i]), packed.multiplier[first + i]);
}

template <class Y, class Convert>
void run(const DepthwiseArgs &args, Convert convert) {
  for (std::ptrdiff_t r = args.first_row; r < args.first_row + args.rows; ++r)
    for (std::ptrdiff_t c = 0; c < args.columns; ++c)
      for (std::size_t first = 0; first < args.channels; first += kBlock)
        run_block<Y>(args, r, c, first, std::min(kBlock, args.channels - first), convert);
}

}  // namespace

std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
  return channels * (sizeof(std::int32_t) + sizeof(float) + taps(window));
}

void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
  const Packed to(packed, w.channels);
  std::memcpy(to.bias, w.bias, w.channels * sizeof(std::int32_t));
  std::memcpy(to.multiplier, w.multiplier, w.channels * sizeof(float));
  std::memcpy(to.w, w.w, taps(window) * w.channels);
}

std::size_t scratch_bytes(const DepthwiseWindow &) { return 0; }

void run_u8(const DepthwiseArgs &args) {
  run<std::uint8_t>(args, [&](std::int32_t acc, float m) { return requantize(acc, m, args.range); });
}

void run_f32(const DepthwiseArgs &args) {
  run<float>(args, [&](std::int32_t acc, float m) {
    return std::min(std::max(static_cast<float>(acc) * m, args.lo), args.hi);
  });
}

}  // namespace qtn::kernels::depthwise_ref
