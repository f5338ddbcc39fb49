// SPDX-License-Identifier: Apache-2.0
// What 512-bit tiles share: up to 14 rows by 32 columns, 28 accumulators of the 32 registers, and their ends.
#pragma once

#include "kernels/avx512.hpp"
#include "kernels/gemm/broadcast.hpp"

namespace qtn::kernels {
namespace {

/// The multipliers of the columns of vector j.
inline __m512 multipliers(const Tile &t, int j) { return _mm512_castsi512_ps(load(t.multiplier + 64 * j)); }

/// Requantizes and stores rows in pairs: a pair of rows by 32 columns is one vector of bytes.
template <class Saturation>
class ZmmStoreU8 {
 public:
  static constexpr std::size_t kSize = 1;
  static constexpr bool kIsRare = std::is_same_v<Saturation, Saturate>;  // some multiplier is not below 1

  explicit ZmmStoreU8(const GemmArgs &args) : saturate_(args.range) {}

  template <int mr, int nv>
  void operator()(const __m512i (&acc)[mr][nv], const Tile &t) const {
    __m512 scale[nv];
    unroll<nv>([&](auto j) { scale[j] = multipliers(t, j); });
    // From two rows x and y, packing leaves lane i with dwords (x_i, x_i+4, y_i, y_i+4), or (x_i, y_i) for 16 columns.
    const __m512i order = nv == 2 ? _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
                                  : _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 1, 5, 9, 13, 0, 0, 0, 0);
    const __mmask32 mask = _cvtu32_mask32(static_cast<unsigned>(first_lanes(t.columns)));
    char *y = t.y;
    const Saturation saturate = saturate_;  // in registers: a store of bytes may change a member
    unroll<(mr + 1) / 2>([&](auto half) {
      constexpr int r = 2 * half, second = r + 1 < mr ? r + 1 : r;
      const auto q = [&](int i, int j) { return saturate.round(scaled(acc[i][j], scale[j])); };
      __m512i bytes;
      if constexpr (nv == 2)
        bytes = saturate.bytes(saturate.words(q(r, 0), q(r, 1)), saturate.words(q(second, 0), q(second, 1)));
      else
        bytes = saturate.bytes(saturate.words(q(r, 0), q(second, 0)), _mm512_setzero_si512());
      bytes = _mm512_permutexvar_epi32(order, bytes);
      _mm256_mask_storeu_epi8(y, mask, _mm512_castsi512_si256(bytes));
      if (second != r) _mm256_mask_storeu_epi8(y + t.ldy, mask, _mm512_extracti64x4_epi64(bytes, 1));
      y += 2 * t.ldy;
    });
  }

 private:
  Saturation saturate_;
};

class ZmmStoreF32 {
 public:
  static constexpr std::size_t kSize = 4;

  explicit ZmmStoreF32(const GemmArgs &args)
      : lo_(_mm512_set1_ps(args.lo)), hi_(_mm512_set1_ps(args.hi)), addend_(args.addend) {}

  template <int mr, int nv>
  void operator()(const __m512i (&acc)[mr][nv], const Tile &t) const {
    unroll<nv>([&](auto j) {
      const __m512 m = multipliers(t, j);
      const __m512 addend = addend_ ? _mm512_loadu_ps(addend_ + t.column + 16 * j) : _mm512_set1_ps(kNoAddend);
      const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(t.columns) >> 16 * j) & 0xffff);
      char *y = t.y + 64 * j;
      unroll<mr>([&](auto r) {
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m512 v = _mm512_min_ps(hi_, _mm512_max_ps(lo_, _mm512_add_ps(scaled(acc[r][j], m), addend)));
        _mm512_mask_storeu_ps(reinterpret_cast<float *>(y), mask, v);
        y += t.ldy;
      });
    });
  }

 private:
  __m512 lo_, hi_;
  const float *addend_;
};

template <bool bare>
class ZmmStoreRows {
 public:
  static constexpr std::size_t kSize = 4;
  static constexpr bool kPlaced = true;

  explicit ZmmStoreRows(const GemmArgs &args)
      : rows_(*args.rows), lo_(_mm512_set1_ps(args.lo)), hi_(_mm512_set1_ps(args.hi)) {}

  template <int mr, int nv>
  void operator()(const __m512i (&acc)[mr][nv], const Tile &t) const {
    unroll<nv>([&](auto j) {
      const std::size_t column = t.column + 16 * j;
      const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(t.columns) >> 16 * j) & 0xffff);
      char *y = t.y + 64 * j;
      unroll<mr>([&](auto r) {
        const __m512i moved =
            _mm512_mullo_epi32(_mm512_set1_epi32(rows_.zero[t.row + r]), _mm512_loadu_si512(rows_.sums + column));
        const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(rows_.scale[t.row + r]), multipliers(t, j));
        __m512 v = scaled(_mm512_sub_epi32(settled(acc[r][j]), moved), scale);
        if constexpr (!bare) {
          // In this order of operands, min and max keep a NaN, as comparisons do.
          v = _mm512_add_ps(v, _mm512_loadu_ps(rows_.bias + column));
          v = _mm512_min_ps(hi_, _mm512_max_ps(lo_, v));
        }
        _mm512_mask_storeu_ps(reinterpret_cast<float *>(y), mask, v);
        y += t.ldy;
      });
    });
  }

 private:
  const GemmRows &rows_;
  __m512 lo_, hi_;
};

struct Zmm {
  using Vector = __m512i;
  static constexpr int kMr = 14, kNr = 32, kLanes = 16, kShift = 0, kRegisters = 32;

  static __m512i load(const char *p) { return kernels::load(p); }
  static __m512i zero() { return _mm512_setzero_si512(); }
  static __m512i sum(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
};

template <class V>
void run_zmm_u8(const GemmArgs &args) {
  if (!args.small) return run_blocks<V, ZmmStoreU8<Saturate>>(args);
  if (!SaturateRelu::serves(args.range)) return run_blocks<V, ZmmStoreU8<SaturateSmall>>(args);
  run_blocks<V, ZmmStoreU8<SaturateRelu>>(args);
}

}  // namespace
}  // namespace qtn::kernels
