// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

std::size_t packed_bytes(std::size_t taps, std::size_t channels) {
  return channels * (sizeof(std::int32_t) + sizeof(float) + taps);
}

void pack(void *packed, const DepthwiseWeights &w) {
  const Packed to(packed, w.channels);
  std::memcpy(to.bias, w.bias, w.channels * sizeof(std::int32_t));
  std::memcpy(to.multiplier, w.multiplier, w.channels * sizeof(float));
  std::memcpy(to.w, w.w, w.taps * w.channels);
}

void run(const DepthwiseArgs &args) {
  const Packed packed(args.packed, args.channels);
  for (std::size_t p = 0; p < args.pixels; ++p) {
    std::uint8_t *y = args.y + static_cast<std::ptrdiff_t>(p) * args.ldy;
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(p) * args.pixel_step;
    for (std::size_t c = 0; c < args.channels; ++c) {
      std::int32_t acc = packed.bias[c];
      for (std::size_t t = 0; t < args.tap_count; ++t)
        acc += args.taps[t][at + static_cast<std::ptrdiff_t>(c)] * packed.w[t * args.channels + c];
      y[c] = requantize(acc, packed.multiplier[c], args.range);
    }
  }
}

}  // namespace qtn::kernels::depthwise_ref
