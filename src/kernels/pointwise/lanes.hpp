// SPDX-License-Identifier: Apache-2.0
// The loops on vectors of any length.
#pragma once

#include "kernels/extremes.hpp"
#include "kernels/pointwise/pointwise.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

struct Sum {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a + b;
  }
};
struct Difference {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a - b;
  }
};
struct Product {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a * b;
  }
};
struct Quotient {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a / b;
  }
};
template <int bytes, class F, bool a_repeats, bool b_repeats>
struct Pairs {
  using Floats [[gnu::vector_size(bytes)]] = float;
  static constexpr std::size_t kCount = bytes / sizeof(float);

  template <bool repeats>
  [[gnu::always_inline]] static Floats load(const float *p, std::size_t i) {
    if constexpr (repeats) return *p - Floats{};  // -0 stays -0
    Floats v;
    __builtin_memcpy(&v, p + i, sizeof v);
    return v;
  }
  [[gnu::always_inline]] static void vector(const float *a, const float *b, float *y, std::size_t i) {
    const Floats v = F::of(load<a_repeats>(a, i), load<b_repeats>(b, i));
    __builtin_memcpy(y + i, &v, sizeof v);
  }

  /// The last vector begins early enough to be whole; a row shorter than one is left to shorter ones.
  [[gnu::always_inline]] static void row(const float *a, const float *b, float *y, std::size_t count) {
    constexpr int kVectors = 4;
    if (count < kCount) {
      if constexpr (bytes > 16)
        Pairs<bytes / 2, F, a_repeats, b_repeats>::row(a, b, y, count);
      else
        for (std::size_t i = 0; i < count; ++i) y[i] = F::of(a[a_repeats ? 0 : i], b[b_repeats ? 0 : i]);
      return;
    }
    std::size_t i = 0;
    for (; i + kVectors * kCount <= count; i += kVectors * kCount)
      unroll<kVectors>([&](auto v) { vector(a, b, y, i + v * kCount); });
    for (; i + kCount <= count; i += kCount) vector(a, b, y, i);
    if (i < count) vector(a, b, y, count - kCount);
  }

  static void rows(const PointwiseArgs &args) {
    const float *a = args.a.at, *b = args.b.at;
    float *y = args.y;
    for (std::size_t r = 0; r < args.rows; ++r, a += args.a.row, b += args.b.row, y += args.columns)
      row(a, b, y, args.columns);
  }
};

template <int bytes, class F>
void run_pairs_by(const PointwiseArgs &args) {
  if (args.a.repeats) return Pairs<bytes, F, true, false>::rows(args);
  args.b.repeats ? Pairs<bytes, F, false, true>::rows(args) : Pairs<bytes, F, false, false>::rows(args);
}

template <int bytes>
void run_pairs(const PointwiseArgs &args) {
  switch (args.f) {
    case Arithmetic::add:
      return run_pairs_by<bytes, Sum>(args);
    case Arithmetic::sub:
      return run_pairs_by<bytes, Difference>(args);
    case Arithmetic::mul:
      return run_pairs_by<bytes, Product>(args);
    case Arithmetic::div:
      return run_pairs_by<bytes, Quotient>(args);
    case Arithmetic::max:
      return run_pairs_by<bytes, Larger>(args);
    case Arithmetic::min:
      return run_pairs_by<bytes, Smaller>(args);
  }
}

template <int bytes, bool adds>
struct Affine {
  using Floats [[gnu::vector_size(bytes)]] = float;
  static constexpr std::size_t kCount = bytes / sizeof(float);

  [[gnu::always_inline]] static Floats load(const float *p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }

  static void rows(const AffineArgs &args) {
    const Floats lo = args.lo - Floats{}, hi = args.hi - Floats{};
    const float *x = args.x;
    float *y = args.y;
    for (std::size_t r = 0; r < args.rows; ++r, x += args.x_row, y += args.y_row) {
      std::size_t i = 0;
      for (; i + kCount <= args.columns; i += kCount) {
        Floats v = load(x + i) * load(args.factor + i);
        if constexpr (adds) v += load(args.addend + i);
        v = v <= lo ? lo : v;  // of two zeros the bound: Relu has no zero below 0
        v = v > hi ? hi : v;
        __builtin_memcpy(y + i, &v, sizeof v);
      }
      for (; i < args.columns; ++i) {
        float v = x[i] * args.factor[i];
        if constexpr (adds) v += args.addend[i];
        v = v <= args.lo ? args.lo : v;
        y[i] = v > args.hi ? args.hi : v;
      }
    }
  }
};

template <int bytes>
void run_affine(const AffineArgs &args) {
  args.addend ? Affine<bytes, true>::rows(args) : Affine<bytes, false>::rows(args);
}

}  // namespace
}  // namespace qtn::kernels
