// SPDX-License-Identifier: Apache-2.0
// What the AVX2 kernels share; the counterpart of avx512.hpp, in an anonymous namespace for the same reason.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/requantize.hpp"

namespace qtn::kernels {
namespace {

/// Real values in units of the output scale to uint8. Packing saturates to [0, 255], and the bounds are applied to the
/// bytes; but the conversion gives INT_MIN for what overflows on either side, so large values meet the upper bound
/// first.
///
/// Bytes leave in the order in which the unpack instructions spread them: within each 128-bit lane, `bytes(words(a, b),
/// words(c, d))` holds the lane of a, then of b, c, d.
class Saturate {
 public:
  explicit Saturate(const QuantizedRange &r)
      : hi_(_mm256_set1_ps(static_cast<float>(r.hi - r.zero))),
        zero_(_mm256_set1_epi16(static_cast<short>(r.zero))),
        lo_(_mm256_set1_epi8(static_cast<char>(r.lo))),
        top_(_mm256_set1_epi8(static_cast<char>(r.hi))) {}

  /// |v| < 2^31.
  __m256i round_small(__m256 v) const { return _mm256_cvtps_epi32(v); }
  /// v is not NaN.
  __m256i round(__m256 v) const { return _mm256_cvtps_epi32(_mm256_min_ps(v, hi_)); }
  /// NaN becomes the zero point.
  __m256i round_any(__m256 v) const { return round(_mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q))); }
  __m256i words(__m256i a, __m256i b) const { return _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_); }
  __m256i bytes(__m256i ab, __m256i cd) const {
    return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(ab, cd), lo_), top_);
  }

 private:
  __m256 hi_;
  __m256i zero_, lo_, top_;
};

/// Four vectors of float(byte - zero), in the order of the unpack instructions. The bytes become the low bits of 2^23,
/// so that one subtraction, exact, converts them.
class Spread {
 public:
  explicit Spread(std::int32_t zero) : offset_(_mm256_set1_ps(static_cast<float>(8388608 + zero))) {}

  void operator()(__m256i bytes, __m256 (&to)[4]) const {
    const __m256i high = _mm256_set1_epi16(0x4B00), zero = _mm256_setzero_si256();
    const __m256i lo = _mm256_unpacklo_epi8(bytes, zero), hi = _mm256_unpackhi_epi8(bytes, zero);
    to[0] = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(lo, high)), offset_);
    to[1] = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(lo, high)), offset_);
    to[2] = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(hi, high)), offset_);
    to[3] = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(hi, high)), offset_);
  }

 private:
  __m256 offset_;
};

inline __m256i load(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }
inline void store(void *p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i *>(p), v); }
inline __m256 scaled(__m256i acc, __m256 multiplier) { return _mm256_mul_ps(_mm256_cvtepi32_ps(acc), multiplier); }

/// Stores what of a vector lies within `columns`, where `before` of them come before it. A mask is used only where it
/// is needed: some CPUs take as long for a masked store as for a dozen others.
class ColumnStore {
 public:
  ColumnStore(std::size_t columns, std::size_t before)
      : whole_(columns >= before + 8),
        mask_(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(columns) - static_cast<int>(before)),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}

  void operator()(char *y, __m256 v) const {
    const auto to = reinterpret_cast<float *>(y);
    whole_ ? _mm256_storeu_ps(to, v) : _mm256_maskstore_ps(to, mask_, v);
  }

  __m256 load(const char *y) const { return _mm256_maskload_ps(reinterpret_cast<const float *>(y), mask_); }

 private:
  bool whole_;
  __m256i mask_;
};

}  // namespace
}  // namespace qtn::kernels
