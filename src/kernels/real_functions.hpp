// SPDX-License-Identifier: Apache-2.0
// Functions of float32 on vectors of any length. Neither fused multiplications nor other instructions that only some
// CPUs have, so that all lengths give the same bits; errors in units in the last place are in the tests of the family activation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace qtn::kernels {
namespace {

template <int bytes>
struct Functions {
  using Floats [[gnu::vector_size(bytes)]] = float;
  using Ints [[gnu::vector_size(bytes)]] = std::int32_t;
  static constexpr std::size_t kCount = bytes / sizeof(float);

  static Floats load(const float *p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(float *p, Floats v) { __builtin_memcpy(p, &v, sizeof v); }

  [[gnu::always_inline]] static Ints bits(Floats x) { return __builtin_bit_cast(Ints, x); }
  [[gnu::always_inline]] static Floats floats(Ints x) { return __builtin_bit_cast(Floats, x); }
  [[gnu::always_inline]] static Floats all(float v) { return Floats{} + v; }
  [[gnu::always_inline]] static Floats magnitude(Floats x) { return floats(bits(x) & 0x7fffffff); }
  [[gnu::always_inline]] static Floats with_sign_of(Floats x, Floats of) {
    return floats(bits(x) | (bits(of) & ~0x7fffffff));
  }
  /// x, or the bound beyond it; NaN stays.
  [[gnu::always_inline]] static Floats at_most(Floats x, float bound) { return x > bound ? all(bound) : x; }
  [[gnu::always_inline]] static Floats at_least(Floats x, float bound) { return x < bound ? all(bound) : x; }

  /// A number p * 2^n.
  struct Scaled {
    Floats p;
    Ints n;

    /// n from -252 to 254: in two steps, since a float has no such power of two and may have such a product.
    [[gnu::always_inline]] Floats value() const {
      const Ints half = n >> 1;
      return p * power_of_two(half) * power_of_two(n - half);
    }
    /// n from -126 to 127.
    [[gnu::always_inline]] Floats near_value() const { return p * power_of_two(n); }
    [[gnu::always_inline]] static Floats power_of_two(Ints n) { return floats((n + 127) << 23); }
  };

  /// e to the x + rest, |x| at most 120, rest small; p is from 0.7 to 1.42. Terms of Cephes' expf.
  [[gnu::always_inline]] static Scaled exponential(Floats x, Floats rest) {
    constexpr float kInverseLn2 = 1.44269504f, kRound = 0x1.8p23f;
    constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // products of the first with n are exact
    constexpr std::int32_t kRoundBits = 0x4b400000;
    const Floats shifted = x * kInverseLn2 + kRound, n = shifted - kRound;
    const Floats r = ((x - n * kLn2High) - n * kLn2Low) + rest;
    Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return {(p * (r * r) + r) + 1.0f, bits(shifted) - kRoundBits};
  }

  [[gnu::always_inline]] static Floats exp(Floats x) {
    return exponential(at_least(at_most(x, 89), -104), Floats{}).value();
  }

  /// For x up to 0; 0 where the result has fewer digits than others.
  [[gnu::always_inline]] static Floats brief_exp(Floats x) {
    constexpr float kLeast = -87;
    const Floats y = exponential(at_least(x, kLeast), Floats{}).near_value();
    return x < kLeast ? Floats{} : y;
  }

  /// e to the -|x| where x is negative, else 1, over 1 + e to the -|x|: nothing overflows.
  [[gnu::always_inline]] static Floats sigmoid(Floats x) {
    const Floats e = exponential(at_least(-magnitude(x), -104), Floats{}).value();
    return (x < 0.0f ? e : all(1)) / (1.0f + e);
  }

  /// x sigmoid(z). Powers of two come last, since the power of e alone would be too small for a float where the result
  /// is not.
  [[gnu::always_inline]] static Floats gated(Floats x, Floats z) {
    constexpr float kLeast = -174;
    const Scaled e = exponential(at_least(-magnitude(z), kLeast), Floats{});
    const Ints half = e.n >> 1;
    const Floats high = Scaled::power_of_two(half), low = Scaled::power_of_two(e.n - half);
    const Floats one = all(1), below = 1.0f + e.p * high * low;
    const Floats y = (z < 0.0f ? x * e.p : x) / below * (z < 0.0f ? high : one) * (z < 0.0f ? low : one);
    return z < kLeast ? x * 0.0f : y;
  }

  [[gnu::always_inline]] static Floats tanh(Floats x) {
    constexpr float kOne = 10, kNear = 0.625f;  // from kOne on the result is 1
    const Floats away = magnitude(x), at = at_most(away, kOne);
    const Floats far = 1.0f - 2.0f / (exponential(at + at, Floats{}).near_value() + 1.0f);
    const Floats square = at * at;
    Floats p = square * -5.70498872745e-3f + 2.06390887954e-2f;  // Cephes' tanhf
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    return with_sign_of(away < kNear ? p * square * at + at : far, x);
  }

  /// Two polynomials: near 0 in the square, beyond it the logarithm of 1 - erf.
  [[gnu::always_inline]] static Floats erf(Floats x) {
    constexpr float kOne = 4, kNear = 0.927734375f;  // from kOne on the result is 1
    const Floats at = at_most(magnitude(x), kOne), square = at * at;
    Floats p = at * -1.72853470e-5f + 3.83197126e-4f;
    const Floats q = at * -3.88396438e-3f + 2.42546219e-2f;
    p = p * square + q;
    p = p * at - 1.06777877e-1f;
    p = p * at - 6.34846687e-1f;
    p = p * at - 1.28717512e-1f;
    const Floats far = 1.0f - exponential(p * at - at, Floats{}).near_value();
    Floats near = square * -5.96761703e-4f + 4.99119423e-3f;
    near = near * square - 2.67681349e-2f;
    near = near * square + 1.12819925e-1f;
    near = near * square - 3.76125336e-1f;
    near = near * square + 1.28379166e-1f;
    return with_sign_of(at > kNear ? far : near * at + at, x);
  }

  /// The share of a normal distribution below -at, for `at` from 0 to 14.5: exp(-at^2 / 2) times a quotient of
  /// polynomials that is off by less than 1e-8. The square is taken in two parts, since an exponential makes more of each
  /// error of a large argument.
  [[gnu::always_inline]] static Scaled normal_tail(Floats at) {
    const Floats high = floats(bits(at) & ~0xfff);
    const Scaled density = exponential(high * high * -0.5f, (at - high) * (at + high) * -0.5f);
    Floats over = at * 0.004115613177418709f + 0.04062880203127861f;
    Floats under = at * 0.010316192172467709f + 0.10184775292873383f;
    over = over * at + 0.1832224279642105f;
    under = under * at + 0.4694369435310364f;
    over = over * at + 0.4382784366607666f;
    under = under * at + 1.2024513483047485f;
    over = over * at + 0.5f;
    under = under * at + 1.6744418144226074f;
    under = under * at + 1.0f;
    return {density.p * over / under, density.n};
  }

  [[gnu::always_inline]] static Floats gelu(Floats x) {
    const Floats at = at_most(magnitude(x), 14.5f);
    Scaled part = normal_tail(at);
    part.p *= at;
    const Floats lost = part.value();
    return x < 0.0f ? -lost : x - lost;
  }

  /// y = f(x) on vectors. The last one begins early enough to be whole, and is read before anything is written, because
  /// y may be x.
  template <class F>
  [[gnu::always_inline]] static void map(const float *x, float *y, std::size_t count, const F &f) {
    if (count < kCount) {
      float few[kCount] = {};
      std::memcpy(few, x, count * sizeof(float));
      store(few, f(load(few)));
      std::memcpy(y, few, count * sizeof(float));
      return;
    }
    const Floats last = f(load(x + count - kCount));
    for (std::size_t i = 0; i + kCount < count; i += kCount) store(y + i, f(load(x + i)));
    store(y + count - kCount, last);
  }
};

}  // namespace
}  // namespace qtn::kernels
