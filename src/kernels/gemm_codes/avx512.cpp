// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"

#include "kernels/gemm_codes/panels.hpp"
#include "kernels/sum_blocks.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::gemm_codes_avx512 {
namespace {

constexpr std::size_t kNr = 16, kLine = kNr * sizeof(float);
using Layout = CodesPanels<kNr>;

/// Elements of words as floats, times 2^(32 - bits).
///
/// The last of a word is at its top, where a conversion to float is all that it needs, and 4 bits at the bottom are the
/// number of a float in a table. The others become bits of the significand of a power of two, which is then taken off:
/// any of the four pipes of a Zen 4 can do the former and the two that cannot multiply the latter.
template <int bits_, bool zeros_>
struct Codes {
  static constexpr int bits = bits_, kPerWord = 32 / bits;
  static constexpr bool zeros = zeros_;

  template <int i>
  static __m512 element(__m512i words) {
    constexpr int at = bits * i;
    if constexpr (bits == 4 && (at == 0 || at == kShift))
      return _mm512_permutexvar_ps(at ? _mm512_srli_epi32(words, kShift) : words, values());
    else if constexpr (i + 1 == kPerWord)
      return _mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(~0u << at))));
    else if constexpr (at + bits <= kSignificand)
      return significand<at>(words);
    else
      return significand<at - kShift>(_mm512_srli_epi32(words, kShift));
  }

  static __m512 element(__m512i words, int i) {
    return significand<0>(_mm512_srl_epi32(words, _mm_cvtsi32_si128(bits * i)));
  }

  static __m512 zero(const char *z) {
    const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(z)));
    return _mm512_cvtepi32_ps(_mm512_slli_epi32(wide, 32 - bits));
  }

 private:
  static constexpr int kSignificand = 23, kShift = bits == 4 ? 12 : 8;

  static __m512 values() {
    const __m512i q = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    return _mm512_cvtepi32_ps(_mm512_slli_epi32(q, 28));
  }

  /// The element whose lowest bit is bit `at`. With its own highest bit flipped it is as much larger than 0 as it was
  /// than the least one.
  template <int at>
  static __m512 significand(__m512i words) {
    constexpr int exponent = kSignificand - at + 32 - bits;
    constexpr float origin = static_cast<float>(1ull << exponent) + static_cast<float>(1ull << 31);
    const __m512i mask = _mm512_set1_epi32(((1 << bits) - 1) << at),
                  power = _mm512_set1_epi32((127 + exponent) << kSignificand | 1 << (at + bits - 1));
    constexpr int kAndXor = (0xF0 & 0xCC) ^ 0xAA;
    return _mm512_sub_ps(_mm512_castsi512_ps(_mm512_ternarylogic_epi32(words, mask, power, kAndXor)),
                         _mm512_set1_ps(origin));
  }
};

/// Walks through `np` panels side by side. For every element of k sink.begin(k) and then sink.add<c>(w) for the weights
/// of each, and before each block of sums sink.enter(k).
template <class Code, int np, class Sink>
[[gnu::always_inline]] inline void each_row(const char *panel, std::size_t panel_bytes, const CodesForm &form,
                                            Sink &sink) {
  constexpr std::size_t kPerWord = Code::kPerWord;
  const Layout layout(form);
  const char *base[np];
  unroll<np>([&](auto c) { base[c] = panel + static_cast<std::size_t>(c) * panel_bytes; });
  const std::size_t ahead = layout.ahead(np);
  std::size_t at = layout.blocks_at(), k = 0;
  for (std::size_t b = 0, blocks = form.blocks(); b < blocks; ++b) {
    const std::size_t depth = layout.depth(b);
    __m512 zero[np], scale[np];
    unroll<np>([&](auto c) {
      if constexpr (Code::zeros) zero[c] = Code::zero(base[c] + kLine + b * kNr);
      scale[c] = _mm512_loadu_ps(base[c] + at);
      _mm_prefetch(base[c] + at + ahead, _MM_HINT_T1);
    });
    at += kLine;
    const auto weight = [&](auto c, __m512 element) {
      if constexpr (Code::zeros) element = _mm512_sub_ps(element, zero[c]);
      return _mm512_mul_ps(element, scale[c]);
    };
    for (const std::size_t end = k + depth; k != end;) {
      sink.enter(k);
      const std::size_t count = in_sum_block(k, end - k);
      for (std::size_t left = count / kPerWord; left != 0; --left, at += kLine, k += kPerWord) {
        __m512i words[np];
        unroll<np>([&](auto c) {
          words[c] = load(base[c] + at);
          _mm_prefetch(base[c] + at + ahead, _MM_HINT_T1);
        });
        unroll<kPerWord>([&](auto i) {
          sink.begin(k + i);
          unroll<np>([&](auto c) { sink.template add<c>(weight(c, Code::template element<i>(words[c]))); });
        });
      }
      const int rest = static_cast<int>(count % kPerWord);
      for (int i = 0; i < rest; ++i, ++k) {
        sink.begin(k);
        unroll<np>([&](auto c) { sink.template add<c>(weight(c, Code::element(load(base[c] + at), i))); });
      }
      if (rest) at += kLine;
    }
  }
}

struct Floats {
  using Vector = __m512;
};

/// Sums of mr rows times np vectors of columns.
template <int mr, int np>
struct Sums {
  TileSums<Floats, mr, np> acc;
  EarlierBlocks<TileSums<Floats, mr, np>> &earlier;
  __m512 x[mr];
  const float *a;
  std::ptrdiff_t lda;

  [[gnu::always_inline]] void enter(std::size_t k) { earlier.enter(k, acc); }

  [[gnu::always_inline]] void begin(std::size_t k) {
    unroll<mr>([&](auto r) { x[r] = _mm512_set1_ps(a[r * lda + static_cast<std::ptrdiff_t>(k)]); });
  }
  template <int c>
  [[gnu::always_inline]] void add(__m512 w) {
    unroll<mr>([&](auto r) { acc.v[r][c] = _mm512_fmadd_ps(x[r], w, acc.v[r][c]); });
  }
};

/// mr rows by np panels, of which `columns` columns there are.
template <class Code, int mr, int np>
void tile(const CodesArgs &args, const char *panel, std::size_t panel_bytes, const float *a, float *y,
          std::size_t columns) {
  // Apart from the other sums, which then stay in registers.
  EarlierBlocks<TileSums<Floats, mr, np>> earlier(args.form.k);
  Sums<mr, np> sums{{}, earlier, {}, a, args.lda};
  unroll<np>([&](auto c) { unroll<mr>([&](auto r) { sums.acc.v[r][c] = _mm512_loadu_ps(panel + c * panel_bytes); }); });
  each_row<Code, np>(panel, panel_bytes, args.form, sums);
  earlier.end(sums.acc);
  const __m512 lo = _mm512_set1_ps(args.lo), hi = _mm512_set1_ps(args.hi);
  unroll<np>([&](auto c) {
    const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(columns) >> 16 * c) & 0xffff);
    // In this order of operands, min and max keep a NaN, as comparisons do.
    unroll<mr>([&](auto r) {
      _mm512_mask_storeu_ps(y + r * args.ldy + 16 * c, mask, _mm512_min_ps(hi, _mm512_max_ps(lo, sums.acc.v[r][c])));
    });
  });
}

/// All columns of mr rows, np panels at a time, and what is left of them one row and panel at a time.
template <class Code, int mr, int np>
void rows(const CodesArgs &args, std::size_t first, std::size_t begin, std::size_t end) {
  const std::size_t panel_bytes = Layout(args.form).panel_bytes();
  const float *a = args.a + static_cast<std::ptrdiff_t>(first) * args.lda;
  float *y = args.y + static_cast<std::ptrdiff_t>(first) * args.ldy;
  const char *packed = static_cast<const char *>(args.packed);
  std::size_t j = begin;
  for (; j + (np - 1) * kNr < end; j += np * kNr)
    tile<Code, mr, np>(args, packed + j / kNr * panel_bytes, panel_bytes, a, y + j, end - j);
  for (; j < end; j += kNr)
    for (int r = 0; r < mr; ++r)
      tile<Code, 1, 1>(args, packed + j / kNr * panel_bytes, panel_bytes, a + r * args.lda, y + r * args.ldy + j,
                       end - j);
}

template <class Code>
void run_codes(const CodesArgs &args) {
  // Every panel meets all rows while it is in cache.
  constexpr std::size_t kMr = 8, kColumns = 4 * kNr;
  for (std::size_t j = 0; j < args.n; j += kColumns) {
    const std::size_t end = j + kColumns < args.n ? j + kColumns : args.n;
    std::size_t i = 0;
    for (; i + kMr <= args.m; i += kMr) rows<Code, kMr, 1>(args, i, j, end);
    for (; i + 4 <= args.m; i += 4) rows<Code, 4, 4>(args, i, j, end);
    for (; i + 2 <= args.m; i += 2) rows<Code, 2, 4>(args, i, j, end);
    for (; i < args.m; ++i) rows<Code, 1, 4>(args, i, j, end);
  }
}

/// Rows of a panel of floats.
struct Rows {
  float *to, *row;
  std::size_t step;
  __mmask16 mask;

  [[gnu::always_inline]] void enter(std::size_t) {}
  [[gnu::always_inline]] void begin(std::size_t k) { row = to + k * step; }
  template <int c>
  [[gnu::always_inline]] void add(__m512 w) {
    _mm512_mask_storeu_ps(row, mask, w);
  }
};

template <class Code>
void unpack_codes(const GemmRealPanel &to, const char *panel, const CodesForm &form) {
  Rows rows{to.elements, to.elements, to.row, _cvtu32_mask16(static_cast<unsigned>(first_lanes(to.columns)) & 0xffff)};
  each_row<Code, 1>(panel, 0, form, rows);
}

}  // namespace

#include "kernels/gemm_codes/entries.inc"

}  // namespace qtn::kernels::gemm_codes_avx512
