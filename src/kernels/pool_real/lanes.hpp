// SPDX-License-Identifier: Apache-2.0
// The loops on vectors of floats of any length, which the compiler turns into those of the instruction set.
#pragma once

#include "kernels/doubles.hpp"
#include "kernels/extremes.hpp"
#include "kernels/pool_real/pool_real.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

inline void max_one_by_one(const PoolRealArgs &args, std::ptrdiff_t pixel) {
  for (std::size_t channel = 0; channel < args.channels; ++channel) {
    float best = args.taps[0][pixel * args.step + static_cast<std::ptrdiff_t>(channel)];
    for (std::size_t t = 1; t < args.tap_count; ++t)
      best = Larger::of(args.taps[t][pixel * args.step + static_cast<std::ptrdiff_t>(channel)], best);
    args.y[pixel * args.ldy + static_cast<std::ptrdiff_t>(channel)] = best + 0.0f;
  }
}

inline void average_one_by_one(const PoolRealArgs &args, std::ptrdiff_t pixel) {
  for (std::size_t channel = 0; channel < args.channels; ++channel) {
    double sum = 0;
    for (std::size_t t = 0; t < args.tap_count; ++t)
      sum += args.taps[t][pixel * args.step + static_cast<std::ptrdiff_t>(channel)];
    args.y[pixel * args.ldy + static_cast<std::ptrdiff_t>(channel)] = static_cast<float>(sum * args.share);
  }
}

template <int bytes>
struct Pools {
  using Floats [[gnu::vector_size(bytes)]] = float;
  using Wide = Vectors<bytes>;
  using Halves = typename Wide::Floats;
  using Doubles = typename Wide::Doubles;
  static constexpr std::size_t kCount = bytes / sizeof(float), kHalf = kCount / 2;
  static constexpr int kVectors = 4;

  template <class V>
  static V load(const float *p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }

  template <int vectors>
  static void max_block(const PoolRealArgs &args, std::ptrdiff_t at, float *y) {
    Floats best[vectors];
    unroll<vectors>([&](auto i) { best[i] = load<Floats>(args.taps[0] + at + i * kCount); });
    for (std::size_t t = 1; t < args.tap_count; ++t) {
      const float *from = args.taps[t] + at;
      unroll<vectors>([&](auto i) { best[i] = Larger::of(load<Floats>(from + i * kCount), best[i]); });
    }
    unroll<vectors>([&](auto i) {
      best[i] += 0.0f;  // of the two zeros the one above 0, in whatever order they came
      __builtin_memcpy(y + i * kCount, &best[i], sizeof best[i]);
    });
  }

  /// A vector has the doubles of half a vector of floats.
  template <int vectors>
  static void average_block(const PoolRealArgs &args, std::ptrdiff_t at, float *y) {
    Doubles sum[vectors] = {};
    for (std::size_t t = 0; t < args.tap_count; ++t) {
      const float *from = args.taps[t] + at;
      unroll<vectors>([&](auto i) { sum[i] += Wide::wide(load<Halves>(from + i * kHalf)); });
    }
    unroll<vectors>([&](auto i) {
      const Halves mean = Wide::narrow(sum[i] * args.share);
      __builtin_memcpy(y + i * kHalf, &mean, sizeof mean);
    });
  }

  /// The channels of a pixel: block(at, y) of so many vectors of `count` of them. The last vector begins early enough to be
  /// whole; where there are fewer, shorter vectors take them.
  template <std::size_t count, class Many, class One, class Fewer>
  [[gnu::always_inline]] static void for_channels(const PoolRealArgs &args, const Many &many, const One &one,
                                                  const Fewer &fewer) {
    for (std::ptrdiff_t p = 0; p < static_cast<std::ptrdiff_t>(args.pixels); ++p) {
      std::size_t c = 0;
      const auto run = [&](const auto &block, std::size_t from) __attribute__((always_inline)) {
        const auto channel = static_cast<std::ptrdiff_t>(from);
        block(p * args.step + channel, args.y + p * args.ldy + channel);
      };
      for (; c + kVectors * count <= args.channels; c += kVectors * count) run(many, c);
      for (; c + count <= args.channels; c += count) run(one, c);
      if (c == args.channels) continue;
      if (args.channels >= count)
        run(one, args.channels - count);
      else
        fewer(p);
    }
  }

  static void max(const PoolRealArgs &args) {
    if constexpr (bytes > 16)
      if (args.channels < kCount) return Pools<bytes / 2>::max(args);
    for_channels<kCount>(
        args, [&](std::ptrdiff_t at, float *y) { max_block<kVectors>(args, at, y); },
        [&](std::ptrdiff_t at, float *y) { max_block<1>(args, at, y); },
        [&](std::ptrdiff_t p) { max_one_by_one(args, p); });
  }

  static void average(const PoolRealArgs &args) {
    if constexpr (bytes > 16)
      if (args.channels < kHalf) return Pools<bytes / 2>::average(args);
    for_channels<kHalf>(
        args, [&](std::ptrdiff_t at, float *y) { average_block<kVectors>(args, at, y); },
        [&](std::ptrdiff_t at, float *y) { average_block<1>(args, at, y); },
        [&](std::ptrdiff_t p) { average_one_by_one(args, p); });
  }
};

}  // namespace
}  // namespace qtn::kernels
