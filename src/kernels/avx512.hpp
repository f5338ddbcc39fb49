// SPDX-License-Identifier: Apache-2.0
// What the AVX-512 kernels share. Anonymous namespace: every translation unit has its own copy, so no function compiled
// for AVX-512 can be the one that the linker keeps for all.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/requantize.hpp"

namespace qtn::kernels {
namespace {

/// acc += four products uint8 * int8 in every int32 lane. GCC 12 spills the accumulators of the intrinsic at every
/// step; the bare instruction it allocates well. No memory operand: vectors of weights are used more than once, and a
/// fold would load them each time.
inline __m512i dot4(__m512i acc, __m512i u8, __m512i s8) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u8), "v"(s8));
  return acc;
}

/// Real values in units of the output scale to uint8. Packing saturates to [0, 255], and the bounds are applied to the
/// bytes; but the conversion gives INT_MIN for what overflows on either side, so large values meet the upper bound
/// first.
///
/// Bytes leave in the order in which the unpack instructions spread them: within each 128-bit lane, `bytes(words(a, b),
/// words(c, d))` holds the lane of a, then of b, c, d.
class Saturate {
 public:
  explicit Saturate(const QuantizedRange &r)
      : hi_(_mm512_set1_ps(static_cast<float>(r.hi - r.zero))),
        zero_(_mm512_set1_epi16(static_cast<short>(r.zero))),
        lo_(_mm512_set1_epi8(static_cast<char>(r.lo))),
        top_(_mm512_set1_epi8(static_cast<char>(r.hi))) {}

  /// |v| < 2^31.
  __m512i round_small(__m512 v) const { return _mm512_cvtps_epi32(v); }
  /// v is not NaN.
  __m512i round(__m512 v) const { return _mm512_cvtps_epi32(_mm512_min_ps(v, hi_)); }
  /// NaN becomes the zero point.
  __m512i round_any(__m512 v) const { return round(_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v)); }
  __m512i words(__m512i a, __m512i b) const { return _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero_); }
  __m512i bytes(__m512i ab, __m512i cd) const {
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(ab, cd), lo_), top_);
  }

 private:
  __m512 hi_;
  __m512i zero_, lo_, top_;
};

/// The same for |v| < 2^31.
struct SaturateSmall : Saturate {
  using Saturate::Saturate;
  __m512i round(__m512 v) const { return round_small(v); }
};

/// The same for |v| < 2^31, a zero point of 0 and all of [0, 255]: what most layers with a Relu give.
struct SaturateRelu {
  explicit SaturateRelu(const QuantizedRange &) {}

  static bool serves(const QuantizedRange &r) { return r.zero == 0 && r.lo == 0 && r.hi == 255; }
  __m512i round(__m512 v) const { return _mm512_cvtps_epi32(v); }
  __m512i words(__m512i a, __m512i b) const { return _mm512_packs_epi32(a, b); }
  __m512i bytes(__m512i ab, __m512i cd) const { return _mm512_packus_epi16(ab, cd); }
};

/// Four vectors of float(byte - zero), in the order of the unpack instructions. The bytes become the low bits of 2^23,
/// so that one subtraction, exact, converts them.
class Spread {
 public:
  explicit Spread(std::int32_t zero) : offset_(_mm512_set1_ps(static_cast<float>(8388608 + zero))) {}

  void operator()(__m512i bytes, __m512 (&to)[4]) const {
    const __m512i high = _mm512_set1_epi16(0x4B00), zero = _mm512_setzero_si512();
    const __m512i lo = _mm512_unpacklo_epi8(bytes, zero), hi = _mm512_unpackhi_epi8(bytes, zero);
    to[0] = _mm512_sub_ps(_mm512_castsi512_ps(_mm512_unpacklo_epi16(lo, high)), offset_);
    to[1] = _mm512_sub_ps(_mm512_castsi512_ps(_mm512_unpackhi_epi16(lo, high)), offset_);
    to[2] = _mm512_sub_ps(_mm512_castsi512_ps(_mm512_unpacklo_epi16(hi, high)), offset_);
    to[3] = _mm512_sub_ps(_mm512_castsi512_ps(_mm512_unpackhi_epi16(hi, high)), offset_);
  }

 private:
  __m512 offset_;
};

/// A bit for each of the first `count` lanes.
inline std::uint64_t first_lanes(std::size_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

inline __m512i load(const void *p) { return _mm512_loadu_si512(p); }
inline __m512 scaled(__m512i acc, __m512 multiplier) { return _mm512_mul_ps(_mm512_cvtepi32_ps(acc), multiplier); }

}  // namespace
}  // namespace qtn::kernels
