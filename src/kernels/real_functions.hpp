// SPDX-License-Identifier: Apache-2.0
// Functions of float32 on vectors of any length. Sums of a product are fused where they say so and nowhere else, so that
// all lengths give the same bits; errors in units in the last place are in the tests of the family activation.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace qtn::kernels {
namespace {

template <int bytes>
struct Functions {
  using Floats [[gnu::vector_size(bytes)]] = float;
  using Vector = Floats;  ///< of sums, for TileSums
  using Ints [[gnu::vector_size(bytes)]] = std::int32_t;
  static constexpr std::size_t kCount = bytes / sizeof(float);

  static constexpr float kInverseLn2 = 1.44269504f;
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // products of the first are exact

  static Floats load(const float *p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(float *p, Floats v) { __builtin_memcpy(p, &v, sizeof v); }

  [[gnu::always_inline]] static Ints bits(Floats x) { return __builtin_bit_cast(Ints, x); }
  [[gnu::always_inline]] static Floats floats(Ints x) { return __builtin_bit_cast(Floats, x); }
  /// Unlike a sum with zeros, this difference leaves -0 as it is, and takes no instruction.
  [[gnu::always_inline]] static Floats all(float v) { return v - Floats{}; }
  [[gnu::always_inline]] static Floats magnitude(Floats x) { return floats(bits(x) & 0x7fffffff); }
  [[gnu::always_inline]] static Floats with_sign_of(Floats x, Floats of) {
    return floats(bits(x) | (bits(of) & ~0x7fffffff));
  }
  /// The same vector, of one width: in the branches of others it is never made.
  template <class To, class From>
  [[gnu::always_inline]] static To as(const From &v) {
    To to;
    __builtin_memcpy(&to, &v, sizeof to);
    return to;
  }

  /// a * b + c, rounded once.
  [[gnu::always_inline]] static Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
    if constexpr (bytes == 64) return as<Floats>(_mm512_fmadd_ps(as<__m512>(a), as<__m512>(b), as<__m512>(c)));
#endif
#if defined(__FMA__)
    if constexpr (bytes == 32) return as<Floats>(_mm256_fmadd_ps(as<__m256>(a), as<__m256>(b), as<__m256>(c)));
    if constexpr (bytes == 16) return as<Floats>(_mm_fmadd_ps(as<__m128>(a), as<__m128>(b), as<__m128>(c)));
#elif defined(__aarch64__)
    if constexpr (bytes == 16) return as<Floats>(vfmaq_f32(as<float32x4_t>(c), as<float32x4_t>(a), as<float32x4_t>(b)));
#endif
    float each[3][kCount];
    store(each[0], a);
    store(each[1], b);
    store(each[2], c);
    for (std::size_t i = 0; i < kCount; ++i) each[2][i] = __builtin_fmaf(each[0][i], each[1][i], each[2][i]);
    return load(each[2]);
  }

  /// first + x * (second + x * ...), from the last term on.
  template <class... Terms>
  [[gnu::always_inline]] static Floats polynomial(Floats x, float first, Terms... terms) {
    if constexpr (sizeof...(terms) == 0)
      return all(first);
    else if constexpr (sizeof...(terms) == 1)
      return fma(x, all(terms)..., all(first));
    else
      return fma(polynomial(x, terms...), x, all(first));
  }

  /// x, or the bound beyond it; NaN stays, as it does in these orders of operands.
  [[gnu::always_inline]] static Floats at_most(Floats x, float bound) {
#if defined(__AVX512F__)
    if constexpr (bytes == 64) return as<Floats>(_mm512_min_ps(_mm512_set1_ps(bound), as<__m512>(x)));
#endif
#if defined(__FMA__)
    if constexpr (bytes == 32) return as<Floats>(_mm256_min_ps(_mm256_set1_ps(bound), as<__m256>(x)));
#endif
    return x > bound ? all(bound) : x;
  }
  [[gnu::always_inline]] static Floats at_least(Floats x, float bound) {
#if defined(__AVX512F__)
    if constexpr (bytes == 64) return as<Floats>(_mm512_max_ps(_mm512_set1_ps(bound), as<__m512>(x)));
#endif
#if defined(__FMA__)
    if constexpr (bytes == 32) return as<Floats>(_mm256_max_ps(_mm256_set1_ps(bound), as<__m256>(x)));
#endif
    return x < bound ? all(bound) : x;
  }

  /// A number p * 2^n. An instruction wants n as a float; where there is none, it is made of bits.
  struct Scaled {
    Floats p, n;
    Ints whole;  ///< n

    /// n from -252 to 254: in two steps, since a float has no such power of two and may have such a product.
    [[gnu::always_inline]] Floats value() const {
#if defined(__AVX512F__)
      if constexpr (bytes == 64) return as<Floats>(_mm512_scalef_ps(as<__m512>(p), as<__m512>(n)));
#endif
      const Ints half = whole >> 1;
      return p * power_of_two(half) * power_of_two(whole - half);
    }
    /// n from -126 to 127.
    [[gnu::always_inline]] Floats near_value() const {
#if defined(__AVX512F__)
      if constexpr (bytes == 64) return value();
#endif
      return p * power_of_two(whole);
    }
    [[gnu::always_inline]] static Floats power_of_two(Ints n) { return floats((n + 127) << 23); }
  };

  /// e to the x + rest, |x| at most 120, rest small or absent; p + 1 is from 0.7 to 1.42. Terms of Cephes' expf.
  template <class... Rest>
  [[gnu::always_inline]] static Scaled exponential_less_one(Floats x, Rest... rest) {
    constexpr float kRound = 0x1.8p23f;
    constexpr std::int32_t kRoundBits = 0x4b400000;
    const Floats shifted = fma(x, all(kInverseLn2), all(kRound)), n = shifted - kRound;
    const Floats r = (fma(n, all(-kLn2Low), fma(n, all(-kLn2High), x)) + ... + rest);
    const Floats p = polynomial(r, 5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f,
                                1.3981999507e-3f, 1.9875691500e-4f);
    return {fma(p, r * r, r), n, bits(shifted) - kRoundBits};
  }

  /// The same with all of p, from 0.7 to 1.42.
  template <class... Rest>
  [[gnu::always_inline]] static Scaled exponential(Floats x, Rest... rest) {
    const Scaled e = exponential_less_one(x, rest...);
    return {e.p + 1.0f, e.n, e.whole};
  }

  [[gnu::always_inline]] static Floats exp(Floats x) { return exponential(at_least(at_most(x, 89), -104)).value(); }

  /// e to the x, less one. Half of it at first, since there may be no float with the power of two.
  [[gnu::always_inline]] static Floats less_one(Floats x) {
    const Scaled e = exponential_less_one(at_least(at_most(x, 89), -87));
    const Floats half = Scaled::power_of_two(e.whole - 1);
    return 2.0f * fma(half, e.p, half - 0.5f);
  }

  /// 2 to the number of eighths that the three lowest bits are.
  [[gnu::always_inline]] static Floats root_of_two(Ints eighths) {
    static constexpr float kRoots[] = {1.0f,       1.0905077f, 1.1892071f, 1.2968396f,
                                       1.4142135f, 1.5422108f, 1.6817929f, 1.8340081f};
#if defined(__AVX512F__)
    if constexpr (bytes == 64) {
      const __m512 roots = _mm512_broadcast_f32x8(_mm256_loadu_ps(kRoots));
      return as<Floats>(_mm512_permutexvar_ps(as<__m512i>(eighths), roots));
    }
#endif
#if defined(__AVX2__)
    if constexpr (bytes == 32)
      return as<Floats>(_mm256_permutevar8x32_ps(_mm256_loadu_ps(kRoots), as<__m256i>(eighths)));
#elif defined(__aarch64__)
    if constexpr (bytes == 16) {
      const auto *at = reinterpret_cast<const std::uint8_t *>(kRoots);
      const uint8x16x2_t roots{vld1q_u8(at), vld1q_u8(at + 16)};
      const Ints places = (eighths & 7) * 0x04040404 + 0x03020100;
      return as<Floats>(vqtbl2q_u8(roots, as<uint8x16_t>(places)));
    }
#endif
    std::int32_t places[kCount];
    __builtin_memcpy(places, &eighths, sizeof places);
    float each[kCount];
    for (std::size_t i = 0; i < kCount; ++i) each[i] = kRoots[places[i] & 7];
    return load(each);
  }

  /// For x up to 0; 0 below -87, where the result has fewer digits than others. The power of two takes whole eighths;
  /// what is left is at most ln(2) / 16, for which three terms do, fitted to a relative error of 2.6e-8.
  [[gnu::always_inline]] static Floats brief_exp(Floats x) {
    constexpr float kBelow = -0x1.5c0002p6f, kRound = 0x1.8p20f;
    constexpr std::int32_t kRoundBits = 0x49c00000;
    constexpr float kSquare = 0.5000645f, kCube = 0.16666858f;
    const auto value = [&](Floats at, const auto &times_power) {
      const Floats shifted = fma(at, all(kInverseLn2), all(kRound)), n = shifted - kRound;
      const Floats r = fma(n, all(-kLn2Low), fma(n, all(-kLn2High), at));
      const Floats less_one = fma(fma(r, all(kCube), all(kSquare)), r * r, r), root = root_of_two(bits(shifted));
      return times_power(fma(root, less_one, root), n, shifted);
    };
#if defined(__AVX512F__)
    if constexpr (bytes == 64) {
      const __mmask16 some = _mm512_cmp_ps_mask(as<__m512>(x), _mm512_set1_ps(kBelow), _CMP_NLE_UQ);
      return value(x, [some](Floats y, Floats n, Floats) {
        return as<Floats>(_mm512_maskz_scalef_ps(some, as<__m512>(y), as<__m512>(n)));
      });
    }
#endif
    const Floats at = at_least(x, kBelow);
    const Floats y = value(at, [](Floats root, Floats, Floats shifted) {
      return root * Scaled::power_of_two((bits(shifted) - kRoundBits) >> 3);
    });
    return at == kBelow ? Floats{} : y;
  }

  /// e to the -|x| where x is negative, else 1, over 1 + e to the -|x|: nothing overflows.
  [[gnu::always_inline]] static Floats sigmoid(Floats x) {
    const Floats e = exponential(at_least(-magnitude(x), -104)).value();
    return (x < 0.0f ? e : all(1)) / (1.0f + e);
  }

  /// x sigmoid(z).
  [[gnu::always_inline]] static Floats gated(Floats x, Floats z) {
    return gated_by(x, z < 0.0f, magnitude(z), Floats{});
  }

  /// The same of z = -(away + rest) where it is `below`, else away + rest. Powers of two come last, since the power of e
  /// alone would be too small for a float where the result is not.
  [[gnu::always_inline]] static Floats gated_by(Floats x, Ints below, Floats away, Floats rest) {
    constexpr float kMost = 174;
    const Scaled e = exponential(-at_most(away, kMost), -rest);
    const Floats over = e.value() + 1.0f;
    const Floats y = (below ? x * e.p : x) / over, far = Scaled{y, e.n, e.whole}.value();
    return below ? (away > kMost ? x * 0.0f : far) : y;
  }

  [[gnu::always_inline]] static Floats tanh(Floats x) {
    constexpr float kOne = 10, kNear = 0.625f;  // from kOne on the result is 1
    const Floats away = magnitude(x), at = at_most(away, kOne);
    const Floats far = 1.0f - 2.0f / (exponential(at + at).near_value() + 1.0f);
    const Floats square = at * at;
    const Floats p = polynomial(square, -3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f,
                                -5.70498872745e-3f);  // Cephes' tanhf
    return with_sign_of(away < kNear ? fma(p * square, at, at) : far, x);
  }

  /// Two polynomials: near 0 in the square, beyond it the logarithm of 1 - erf.
  [[gnu::always_inline]] static Floats erf(Floats x) {
    constexpr float kOne = 4, kNear = 0.927734375f;  // from kOne on the result is 1
    const Floats at = at_most(magnitude(x), kOne), square = at * at;
    // Odd and even terms apart, which is a shorter chain.
    const Floats p = polynomial(at, -1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f);
    const Floats q =
        fma(square, polynomial(at, 3.83197126e-4f, -1.72853470e-5f), polynomial(at, 2.42546219e-2f, -3.88396438e-3f));
    const Floats far = 1.0f - exponential(fma(fma(q, square * at, p), at, -at)).near_value();
    const Floats near = polynomial(square, 1.28379166e-1f, -3.76125336e-1f, 1.12819925e-1f, -2.67681349e-2f,
                                   4.99119423e-3f, -5.96761703e-4f);
    return with_sign_of(at > kNear ? far : fma(near, at, at), x);
  }

  /// The share of a normal distribution below -at, for `at` from 0 to 14.5: exp(-at^2 / 2) times a quotient of
  /// polynomials that is off by less than 1e-8. What the square loses is kept, since an exponential makes more of each
  /// error of a large argument.
  [[gnu::always_inline]] static Scaled normal_tail(Floats at) {
    const Floats square = at * at, lost = fma(at, at, -square);
    const Scaled density = exponential(square * -0.5f, lost * -0.5f);
    const Floats over =
        polynomial(at, 0.5f, 0.4382784366607666f, 0.1832224279642105f, 0.04062880203127861f, 0.004115613177418709f);
    const Floats under = polynomial(at, 1.0f, 1.6744418144226074f, 1.2024513483047485f, 0.4694369435310364f,
                                    0.10184775292873383f, 0.010316192172467709f);
    return {density.p * over / under, density.n, density.whole};
  }

  [[gnu::always_inline]] static Floats gelu(Floats x) {
    const Floats at = at_most(magnitude(x), 14.5f);
    Scaled part = normal_tail(at);
    part.p *= at;
    const Floats lost = part.value();
    return x < 0.0f ? -lost : x - lost;
  }

  /// x sigmoid(z), z = 2 sqrt(2 / pi) (x + 0.044715 x^3). What products and sums lose is kept, as above.
  [[gnu::always_inline]] static Floats gelu_by_tanh(Floats x) {
    constexpr double kSlope = 1.5957691216057308, kCubic = 0.044715 * kSlope;
    constexpr auto kSlopeHigh = static_cast<float>(kSlope), kCubicHigh = static_cast<float>(kCubic);
    constexpr auto kSlopeLow = static_cast<float>(kSlope - static_cast<double>(kSlopeHigh));
    constexpr auto kCubicLow = static_cast<float>(kCubic - static_cast<double>(kCubicHigh));
    constexpr float kMost = 12;  // from there on the result is x, or smaller than floats
    const Floats at = at_most(magnitude(x), kMost), square = at * at, square_lost = fma(at, at, -square);
    const Floats cube = square * kCubicHigh, slope = cube + kSlopeHigh, added = slope - cube;
    Floats lost = fma(square, all(kCubicHigh), -cube) + ((cube - (slope - added)) + (kSlopeHigh - added));
    lost = fma(square_lost, all(kCubicHigh), lost) + polynomial(square, kSlopeLow, kCubicLow);
    const Floats z = at * slope;
    return gated_by(at_least(x, -kMost), x < 0.0f, z, fma(at, slope, -z) + at * lost);
  }

  /// y = f(x) on vectors. The last one begins early enough to be whole, and is read before anything is written, because
  /// y may be x.
  template <class F>
  [[gnu::always_inline]] static void map(const float *x, float *y, std::size_t count, const F &f) {
    if (count == 0) return;
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
