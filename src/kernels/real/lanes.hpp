// SPDX-License-Identifier: Apache-2.0
// The loops on vectors of any length, which the compiler turns into those of the instruction set.
#pragma once

#include <bit>

#include "kernels/real/real.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

template <class T>
T clamped(const T &v, const T &lo, const T &hi) {
  const T above = v <= lo ? lo : v;  // of two zeros the bound: Relu has no zero below 0
  return above > hi ? hi : above;
}

inline void one_by_one(const TapsArgs &args, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    float sum = args.begin;
    for (std::size_t t = 0; t < args.taps; ++t)
      sum += args.weights[t] * args.x[args.offsets[t] + static_cast<std::ptrdiff_t>(i)];
    args.y[i] = sum;
  }
}

inline void gate_one_by_one(const GateArgs &args, std::size_t begin) {
  for (std::size_t i = begin; i < args.count; ++i)
    args.dx[i] = args.y[i] <= args.lo || args.y[i] >= args.hi ? 0.0f : args.dy[i];
}

template <int bytes>
struct Lanes {
  using Floats [[gnu::vector_size(bytes)]] = float;
  using Ints [[gnu::vector_size(bytes)]] = std::int32_t;
  static constexpr std::size_t kCount = bytes / sizeof(float);

  template <class V = Floats>
  static V load(const float *p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(float *p, Floats v) { __builtin_memcpy(p, &v, sizeof v); }

  template <int vectors>
  static void taps_block(const TapsArgs &args, std::size_t i) {
    Floats sum[vectors];
    unroll<vectors>([&](auto v) { sum[v] = Floats{} + args.begin; });
    for (std::size_t t = 0; t < args.taps; ++t) {
      const float *from = args.x + args.offsets[t] + i;
      const float weight = args.weights[t];
      unroll<vectors>([&](auto v) { sum[v] += weight * load(from + v * kCount); });
    }
    unroll<vectors>([&](auto v) { store(args.y + i + v * kCount, sum[v]); });
  }

  /// The last vector begins early enough to be whole.
  static void taps(const TapsArgs &args) {
    constexpr int kVectors = 4;
    if (args.count < kCount) return one_by_one(args, 0, args.count);
    std::size_t i = 0;
    for (; i + kVectors * kCount <= args.count; i += kVectors * kCount) taps_block<kVectors>(args, i);
    for (; i + kCount <= args.count; i += kCount) taps_block<1>(args, i);
    if (i < args.count) taps_block<1>(args, args.count - kCount);
  }

  static void clamp(float *y, std::size_t count, float lo, float hi) {
    const Floats low = Floats{} + lo, high = Floats{} + hi;
    std::size_t i = 0;
    for (; i + kCount <= count; i += kCount) store(y + i, clamped(load(y + i), low, high));
    for (; i < count; ++i) y[i] = clamped(y[i], lo, hi);
  }

  static void add(float *y, const float *x, std::size_t count, float lo, float hi) {
    const Floats low = Floats{} + lo, high = Floats{} + hi;
    std::size_t i = 0;
    for (; i + kCount <= count; i += kCount) store(y + i, clamped(load(y + i) + load(x + i), low, high));
    for (; i < count; ++i) y[i] = clamped(y[i] + x[i], lo, hi);
  }

  static void gate(const GateArgs &args) {
    const Floats lo = Floats{} + args.lo, hi = Floats{} + args.hi;
    std::size_t i = 0;
    for (; i + kCount <= args.count; i += kCount) {
      const Floats y = load(args.y + i);
      const Ints bounded = (y <= lo) | (y >= hi);
      store(args.dx + i, bounded ? Floats{} : load(args.dy + i));
    }
    gate_one_by_one(args, i);
  }

  static Extent extent(const float *x, std::size_t count) {
    constexpr int kVectors = 4;
    constexpr std::int32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
    Floats min[kVectors], max[kVectors];
    Ints magnitude[kVectors];
    unroll<kVectors>([&](auto v) {
      min[v] = max[v] = Floats{} + x[0];
      magnitude[v] = Ints{};
    });
    std::size_t i = 0;
    for (; i + kVectors * kCount <= count; i += kVectors * kCount)
      unroll<kVectors>([&](auto v) {
        const Floats a = load(x + i + v * kCount);
        const Ints bits = load<Ints>(x + i + v * kCount) & kMagnitude;
        min[v] = a < min[v] ? a : min[v];
        max[v] = a > max[v] ? a : max[v];
        magnitude[v] = bits > magnitude[v] ? bits : magnitude[v];
      });
    Extent e{x[0], x[0], true};
    const auto take = [&](float lo, float hi, std::int32_t bits) {
      e.min = lo < e.min ? lo : e.min;
      e.max = hi > e.max ? hi : e.max;
      e.finite = e.finite && bits < kInfinity;
    };
    unroll<kVectors>([&](auto v) {
      for (std::size_t lane = 0; lane < kCount; ++lane) take(min[v][lane], max[v][lane], magnitude[v][lane]);
    });
    for (; i < count; ++i) take(x[i], x[i], std::bit_cast<std::int32_t>(x[i]) & kMagnitude);
    return {e.min + 0.0f, e.max + 0.0f, e.finite};
  }
};

}  // namespace
}  // namespace qtn::kernels
