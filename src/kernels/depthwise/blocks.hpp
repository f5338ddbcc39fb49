// SPDX-License-Identifier: Apache-2.0
// The packed form of depthwise weights, and how channels are cut into blocks.
//
// A vector of bytes has kLanes lanes of 16 channels. Where fewer channels are left than a vector holds, its lanes are
// shared by 2 or 4 pixels; a block is the channels of one such vector. Unpacking spreads a vector to four vectors of
// dwords, number v holding channels 4v to 4v+3 of every lane; one dword holds kTaps taps of a row, a step. Weights,
// biases and multipliers are packed in that order, repeated for each pixel; packing the results to bytes undoes it.
//
// The dwords of an output whose row of taps are neighbouring pixels serve the next output too, with weights shifted by
// one tap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/depthwise/depthwise.hpp"

namespace qtn::kernels {
namespace {

/// Whether neighbouring outputs, and neighbouring taps of a row, read neighbouring pixels.
inline bool is_adjacent(const DepthwiseWindow &w) { return w.stride[1] == 1 && w.dilation[1] == 1; }

/// A kernel that takes `shift` off every element of x finds it in the bias.
template <class T, int kTaps, int kLanes, int shift>
struct Blocks {
  static constexpr std::size_t kVector = 16 * kLanes;

  /// How many pixels share a vector when this many channels are left.
  static constexpr int pixels(std::size_t left) {
    const int used = left >= kVector ? kLanes : static_cast<int>((left + 15) / 16);
    return used * 2 > kLanes ? 1 : used * 4 > kLanes ? 2 : 4;
  }

  /// Steps of a row of taps, with one more where they also serve the next output.
  static std::size_t steps(const DepthwiseWindow &w) {
    const std::ptrdiff_t taps = w.kernel[1] + (is_adjacent(w) ? 1 : 0);
    return static_cast<std::size_t>((taps + kTaps - 1) / kTaps);
  }

  /// In bytes: four vectors for each step, then where they serve two outputs the same shifted; after all steps of all
  /// rows four vectors of biases, four of multipliers.
  static std::size_t step_bytes(const DepthwiseWindow &w) { return (is_adjacent(w) ? 8 : 4) * kVector; }
  static std::size_t bias_at(const DepthwiseWindow &w) {
    return static_cast<std::size_t>(w.kernel[0]) * steps(w) * step_bytes(w);
  }
  static std::size_t block_bytes(const DepthwiseWindow &w) { return bias_at(w) + 8 * kVector; }

  static std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
    std::size_t count = 0;
    for_each(channels, [&](int, std::size_t, std::size_t) { ++count; });
    return count * block_bytes(window);
  }

  static void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
    char *block = static_cast<char *>(packed);
    for_each(w.channels, [&](int pixels, std::size_t first, std::size_t used) {
      pack_block(block, window, w, kLanes / pixels, first, used);
      block += block_bytes(window);
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
  static void pack_block(char *block, const DepthwiseWindow &window, const DepthwiseWeights &w, int lanes,
                         std::size_t first, std::size_t used) {
    std::int32_t *bias = reinterpret_cast<std::int32_t *>(block + bias_at(window));
    float *multiplier = reinterpret_cast<float *>(bias + 4 * kVector / 4);
    const auto rows = static_cast<std::size_t>(window.kernel[0]), columns = static_cast<std::size_t>(window.kernel[1]);
    for (int v = 0; v < 4; ++v)
      for (int lane = 0; lane < kLanes; ++lane)
        for (int d = 0; d < 4; ++d) {
          const std::size_t c = static_cast<std::size_t>(lane % lanes * 16 + 4 * v + d);
          const std::size_t dword = static_cast<std::size_t>((v * kLanes + lane) * 4 + d);
          bias[dword] = c < used ? w.bias[first + c] + shift * tap_sum(rows * columns, w, first + c) : 0;
          multiplier[dword] = c < used ? w.multiplier[first + c] : 0;
          for (std::size_t ky = 0; ky < rows; ++ky)
            for (std::size_t step = 0; step < steps(window); ++step) {
              T *to = reinterpret_cast<T *>(block + (ky * steps(window) + step) * step_bytes(window)) + dword * kTaps;
              const auto at = [&](std::size_t kx) -> T {  // -1 wraps to a tap that is not there either
                return static_cast<T>(kx < columns && c < used ? w.w[(ky * columns + kx) * w.channels + first + c] : 0);
              };
              for (std::size_t i = 0; i < kTaps; ++i) to[i] = at(step * kTaps + i);
              if (!is_adjacent(window)) continue;
              T *shifted = to + 4 * kVector / sizeof(T);
              for (std::size_t i = 0; i < kTaps; ++i) shifted[i] = at(step * kTaps + i - 1);
            }
        }
  }

  static std::int32_t tap_sum(std::size_t taps, const DepthwiseWeights &w, std::size_t channel) {
    std::int32_t sum = 0;
    for (std::size_t t = 0; shift != 0 && t < taps; ++t) sum += w.w[t * w.channels + channel];
    return sum;
  }
};

}  // namespace
}  // namespace qtn::kernels
