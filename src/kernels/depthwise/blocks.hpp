// SPDX-License-Identifier: Apache-2.0
// The packed form of depthwise weights, and how channels are cut into blocks.
//
// A vector of bytes has kLanes lanes of 16 channels. Where fewer channels are left than a vector holds, its lanes are
// shared by 2 or 4 neighbouring pixels; a block is the channels of one such vector. Unpacking spreads a vector to four
// vectors of dwords, number v holding channels 4v to 4v+3 of every lane; one dword holds kTaps taps of its channel.
// Weights, biases and multipliers are packed in that order, repeated for each pixel; packing the results to bytes
// undoes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/depthwise/depthwise.hpp"

namespace qtn::kernels {
namespace {

template <class T, int kTaps, int kLanes>
struct Blocks {
  static constexpr std::size_t kVector = 16 * kLanes;

  /// How many pixels share a vector when this many channels are left.
  static constexpr int pixels(std::size_t left) {
    const int used = left >= kVector ? kLanes : static_cast<int>((left + 15) / 16);
    return used * 2 > kLanes ? 1 : used * 4 > kLanes ? 2 : 4;
  }

  /// A row of a 3x3 window is one group of 3 taps, so that the dwords of one output pixel, shifted, serve the next.
  static constexpr bool by_rows(std::size_t taps) { return kTaps == 4 && taps == 9; }
  static constexpr std::size_t group_taps(std::size_t taps) { return by_rows(taps) ? 3 : kTaps; }
  static constexpr std::size_t groups(std::size_t taps) { return (taps + group_taps(taps) - 1) / group_taps(taps); }

  /// In bytes: four vectors for each group, by rows the same shifted by one tap; then four of biases, four of
  /// multipliers.
  static constexpr std::size_t shifted_at(std::size_t taps) { return groups(taps) * 4 * kVector; }
  static constexpr std::size_t bias_at(std::size_t taps) { return shifted_at(taps) * (by_rows(taps) ? 2 : 1); }
  static constexpr std::size_t block_bytes(std::size_t taps) { return bias_at(taps) + 8 * kVector; }

  static std::size_t packed_bytes(std::size_t taps, std::size_t channels) {
    std::size_t count = 0;
    for_each(channels, [&](int, std::size_t, std::size_t) { ++count; });
    return count * block_bytes(taps);
  }

  static void pack(void *packed, const DepthwiseWeights &w) {
    char *block = static_cast<char *>(packed);
    for_each(w.channels, [&](int pixels, std::size_t first, std::size_t used) {
      pack_block(block, w, kLanes / pixels, first, used);
      block += block_bytes(w.taps);
    });
  }

  /// body(pixels that share a vector, first channel, channels) for every block.
  template <class Body>
  static void for_each(std::size_t channels, Body body) {
    for (std::size_t c = 0; c < channels;) {
      const std::size_t left = channels - c;
      const int shared = pixels(left);
      const std::size_t width = kVector / static_cast<std::size_t>(shared), used = left < width ? left : width;
      body(shared, c, used);
      c += used;
    }
  }

 private:
  static void pack_block(char *block, const DepthwiseWeights &w, int lanes, std::size_t first, std::size_t used) {
    T *weight = reinterpret_cast<T *>(block), *shifted = reinterpret_cast<T *>(block + shifted_at(w.taps));
    std::int32_t *bias = reinterpret_cast<std::int32_t *>(block + bias_at(w.taps));
    float *multiplier = reinterpret_cast<float *>(bias + 4 * kVector / 4);
    const std::size_t per_group = group_taps(w.taps);
    for (int v = 0; v < 4; ++v)
      for (int lane = 0; lane < kLanes; ++lane)
        for (int d = 0; d < 4; ++d) {
          const std::size_t c = static_cast<std::size_t>(lane % lanes * 16 + 4 * v + d);
          const std::size_t dword = static_cast<std::size_t>((v * kLanes + lane) * 4 + d);
          bias[dword] = c < used ? w.bias[first + c] : 0;
          multiplier[dword] = c < used ? w.multiplier[first + c] : 0;
          for (std::size_t g = 0; g < groups(w.taps); ++g)
            for (std::size_t i = 0; i < kTaps; ++i) {
              const auto at = [&](std::size_t tap) -> T {  // tap of this group, zero if there is none
                const std::size_t t = g * per_group + tap;
                return static_cast<T>(tap < per_group && t < w.taps && c < used ? w.w[t * w.channels + first + c] : 0);
              };
              const std::size_t to = (g * kVector + dword) * kTaps + i;
              weight[to] = at(i);
              if (by_rows(w.taps)) shifted[to] = i == 0 ? T{} : at(i - 1);
            }
        }
  }
};

}  // namespace
}  // namespace qtn::kernels
