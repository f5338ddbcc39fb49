// SPDX-License-Identifier: Apache-2.0
// What the 256-bit tiles share: up to 6 rows by 16 columns, 12 accumulators of the 16 registers, and their ends.
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/gemm/broadcast.hpp"

namespace qtn::kernels {
namespace {

/// `small`: GemmArgs::small.
template <bool small>
class YmmStoreU8 {
 public:
  static constexpr std::size_t kSize = 1;
  static constexpr bool kIsRare = !small;

  explicit YmmStoreU8(const GemmArgs &args) : saturate_(args.range) {}

  template <int mr, int nv>
  void operator()(const __m256i (&acc)[mr][nv], const Tile &t) const {
    constexpr int kColumns = 8 * nv, kTogether = 4 / nv;  // rows in a vector of bytes
    // AVX2 has no masked store of bytes, and a call for each row would make every accumulator go through memory.
    alignas(32) char part[mr * kColumns];
    const bool whole = t.columns == kColumns;
    char *y = whole ? t.y : part;
    const std::ptrdiff_t ldy = whole ? t.ldy : kColumns;
    __m256 scale[nv];
    unroll<nv>([&](auto j) { scale[j] = _mm256_castsi256_ps(load(t.multiplier + 32 * j)); });
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // undoes the lanes of packing
    const Saturate saturate = saturate_;  // in registers: a store of bytes may change a member
    unroll<(mr + kTogether - 1) / kTogether>([&](auto group) {
      constexpr int kFirst = group * kTogether, kLast = mr - 1;
      const auto words = [&](auto pair) {
        constexpr int a = 2 * pair, b = a + 1;  // of the vectors of this group
        constexpr int row_a = kFirst + a / nv, row_b = kFirst + b / nv;
        constexpr int r = row_a < kLast ? row_a : kLast, s = row_b < kLast ? row_b : kLast;
        const auto q = [&](int row, int j) {
          const __m256 real = scaled(acc[row][j], scale[j]);
          return small ? saturate.round_small(real) : saturate.round(real);
        };
        return saturate.words(q(r, a % nv), q(s, b % nv));
      };
      const __m256i bytes = _mm256_permutevar8x32_epi32(saturate.bytes(words(Index<0>{}), words(Index<1>{})), order);
      unroll<(kTogether < mr - kFirst ? kTogether : mr - kFirst)>([&](auto i) {
        const __m128i half = i < kTogether / 2 ? _mm256_castsi256_si128(bytes) : _mm256_extracti128_si256(bytes, 1);
        if constexpr (nv == 2)
          _mm_storeu_si128(reinterpret_cast<__m128i *>(y), half);
        else
          _mm_storeu_si64(y, i % 2 ? _mm_unpackhi_epi64(half, half) : half);
        y += ldy;
      });
    });
    if (!whole)
      for (int r = 0; r < mr; ++r) __builtin_memcpy(t.y + r * t.ldy, part + r * kColumns, t.columns);
  }

 private:
  Saturate saturate_;
};

class YmmStoreF32 {
 public:
  static constexpr std::size_t kSize = 4;

  explicit YmmStoreF32(const GemmArgs &args)
      : lo_(_mm256_set1_ps(args.lo)), hi_(_mm256_set1_ps(args.hi)), addend_(args.addend) {}

  template <int mr, int nv>
  void operator()(const __m256i (&acc)[mr][nv], const Tile &t) const {
    unroll<nv>([&](auto j) {
      const __m256 m = _mm256_castsi256_ps(load(t.multiplier + 32 * j));
      const __m256 addend = addend_ ? _mm256_loadu_ps(addend_ + t.column + 8 * j) : _mm256_set1_ps(kNoAddend);
      const ColumnStore store(t.columns, 8 * j);
      char *y = t.y + 32 * j;
      unroll<mr>([&](auto r) {
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m256 v = _mm256_min_ps(hi_, _mm256_max_ps(lo_, _mm256_add_ps(scaled(acc[r][j], m), addend)));
        store(y, v);
        y += t.ldy;
      });
    });
  }

 private:
  __m256 lo_, hi_;
  const float *addend_;
};

class YmmStoreRows {
 public:
  static constexpr std::size_t kSize = 4;
  static constexpr bool kPlaced = true;

  explicit YmmStoreRows(const GemmArgs &args)
      : rows_(*args.rows), lo_(_mm256_set1_ps(args.lo)), hi_(_mm256_set1_ps(args.hi)) {}

  template <int mr, int nv>
  void operator()(const __m256i (&acc)[mr][nv], const Tile &t) const {
    unroll<nv>([&](auto j) {
      const std::size_t at = t.column + 8 * j;
      const ColumnStore store(t.columns, 8 * j);
      char *y = t.y + 32 * j;
      unroll<mr>([&](auto r) {
        const __m256i sums = load(reinterpret_cast<const char *>(rows_.sums + at));
        const __m256i moved = _mm256_mullo_epi32(_mm256_set1_epi32(rows_.zero[t.row + r]), sums);
        const __m256 scale =
            _mm256_mul_ps(_mm256_set1_ps(rows_.scale[t.row + r]), _mm256_castsi256_ps(load(t.multiplier + 32 * j)));
        const __m256 real = scaled(_mm256_sub_epi32(settled(acc[r][j]), moved), scale);
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m256 v = _mm256_min_ps(hi_, _mm256_max_ps(lo_, _mm256_add_ps(real, _mm256_loadu_ps(rows_.bias + at))));
        store(y, v);
        y += t.ldy;
      });
    });
  }

 private:
  const GemmRows &rows_;
  __m256 lo_, hi_;
};

struct Ymm {
  using Vector = __m256i;
  static constexpr int kMr = 6, kNr = 16, kLanes = 8, kRegisters = 16, kShift = 0;

  static __m256i load(const char *p) { return kernels::load(p); }
  static __m256i zero() { return _mm256_setzero_si256(); }
  static __m256i sum(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
};

template <class V>
void run_ymm_u8(const GemmArgs &args) {
  args.small ? run_blocks<V, YmmStoreU8<true>>(args) : run_blocks<V, YmmStoreU8<false>>(args);
}

}  // namespace
}  // namespace qtn::kernels
