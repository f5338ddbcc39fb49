// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/gemm_codes/panels.hpp"
#include "kernels/sum_blocks.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::gemm_codes_avx2 {
namespace {

constexpr std::size_t kNr = 16, kLine = kNr * sizeof(float);
constexpr int kVectors = 2;  // of a panel
using Layout = CodesPanels<kNr>;

/// Elements of words as floats, times 2^(32 - bits).
template <int bits_, bool zeros_>
struct Codes {
  static constexpr int bits = bits_, kPerWord = 32 / bits;
  static constexpr bool zeros = zeros_;

  template <int i>
  static __m256 element(__m256i words) {
    if constexpr (i + 1 < kPerWord) words = _mm256_slli_epi32(words, 32 - bits * (i + 1));
    if constexpr (i > 0) words = _mm256_and_si256(words, top());
    return _mm256_cvtepi32_ps(words);
  }

  static __m256 element(__m256i words, int i) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_sll_epi32(words, _mm_cvtsi32_si128(32 - bits * (i + 1))), top()));
  }

  static __m256 zero(const char *z) {
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(z)));
    return _mm256_cvtepi32_ps(_mm256_slli_epi32(wide, 32 - bits));
  }

 private:
  static __m256i top() { return _mm256_set1_epi32(static_cast<int>(~0u << (32 - bits))); }
};

/// Walks through `np` panels side by side. For every element of k sink.begin(k) and then sink.add<c>(w) for each of the
/// 2 * np vectors of its weights, and before each block of sums sink.enter(k). No closure refers to another one here:
/// the compiler would leave sums in memory.
template <class Code, int np, class Sink>
[[gnu::always_inline]] inline void each_row(const char *panel, std::size_t panel_bytes, const CodesForm &form,
                                            Sink &sink) {
  constexpr std::size_t kPerWord = Code::kPerWord;
  constexpr int nv = np * kVectors;
  const Layout layout(form);
  const char *base[np];
  unroll<np>([&](auto p) { base[p] = panel + static_cast<std::size_t>(p) * panel_bytes; });
  std::size_t at = layout.blocks_at(), k = 0;
  for (std::size_t b = 0, blocks = form.blocks(); b < blocks; ++b) {
    const std::size_t depth = layout.depth(b), scales = at;
    __m256 zero[nv];
    if constexpr (Code::zeros)
      unroll<nv>([&](auto c) { zero[c] = Code::zero(base[c / kVectors] + kLine + b * kNr + 8 * (c % kVectors)); });
    at += kLine;
    for (const std::size_t end = k + depth; k != end;) {
      sink.enter(k);
      const std::size_t count = in_sum_block(k, end - k);
      for (std::size_t left = count / kPerWord; left != 0; --left, at += kLine, k += kPerWord)
        unroll<kPerWord>([&](auto i) {
          // Words are read again for every element: kept, they would take the registers of sums.
          __asm__("" : "+r"(at));
          sink.begin(k + i);
          unroll<nv>([&](auto c) {
            const char *of = base[c / kVectors] + 32 * (c % kVectors);
            __m256 element = Code::template element<i>(load(of + at));
            if constexpr (Code::zeros) element = _mm256_sub_ps(element, zero[c]);
            sink.template add<c>(_mm256_mul_ps(element, _mm256_loadu_ps(reinterpret_cast<const float *>(of + scales))));
          });
        });
      const int rest = static_cast<int>(count % kPerWord);
      for (int i = 0; i < rest; ++i, ++k) {
        sink.begin(k);
        unroll<nv>([&](auto c) {
          const char *of = base[c / kVectors] + 32 * (c % kVectors);
          __m256 element = Code::element(load(of + at), i);
          if constexpr (Code::zeros) element = _mm256_sub_ps(element, zero[c]);
          sink.template add<c>(_mm256_mul_ps(element, _mm256_loadu_ps(reinterpret_cast<const float *>(of + scales))));
        });
      }
      if (rest) at += kLine;
    }
  }
}

struct Floats {
  using Vector = __m256;
};

/// Sums of mr rows times nv vectors of columns.
template <int mr, int nv>
struct Sums {
  TileSums<Floats, mr, nv> acc;
  EarlierBlocks<TileSums<Floats, mr, nv>> &earlier;
  __m256 x[mr];
  const float *a;
  std::ptrdiff_t lda;

  [[gnu::always_inline]] void enter(std::size_t k) { earlier.enter(k, acc); }

  [[gnu::always_inline]] void begin(std::size_t k) {
    unroll<mr>([&](auto r) { x[r] = _mm256_broadcast_ss(a + r * lda + k); });
  }
  template <int c>
  [[gnu::always_inline]] void add(__m256 w) {
    unroll<mr>([&](auto r) { acc.v[r][c] = _mm256_fmadd_ps(x[r], w, acc.v[r][c]); });
  }
};

/// mr rows by np panels, of which `columns` columns there are.
template <class Code, int mr, int np>
void tile(const CodesArgs &args, const char *panel, std::size_t panel_bytes, const float *a, float *y,
          std::size_t columns) {
  constexpr int nv = np * kVectors;
  // Apart from the other sums, which then stay in registers.
  EarlierBlocks<TileSums<Floats, mr, nv>> earlier(args.form.k);
  Sums<mr, nv> sums{{}, earlier, {}, a, args.lda};
  unroll<nv>([&](auto c) {
    const char *bias = panel + c / kVectors * panel_bytes + 32 * (c % kVectors);
    unroll<mr>([&](auto r) { sums.acc.v[r][c] = _mm256_loadu_ps(reinterpret_cast<const float *>(bias)); });
  });
  each_row<Code, np>(panel, panel_bytes, args.form, sums);
  earlier.end(sums.acc);
  const __m256 lo = _mm256_set1_ps(args.lo), hi = _mm256_set1_ps(args.hi);
  unroll<nv>([&](auto c) {
    const ColumnStore store(columns, 8 * c);
    // In this order of operands, min and max keep a NaN, as comparisons do.
    unroll<mr>([&](auto r) {
      store(reinterpret_cast<char *>(y + r * args.ldy + 8 * c), _mm256_min_ps(hi, _mm256_max_ps(lo, sums.acc.v[r][c])));
    });
  });
}

/// All columns of mr rows, np panels at a time.
template <class Code, int mr, int np>
void rows(const CodesArgs &args, std::size_t first, std::size_t begin, std::size_t end) {
  const std::size_t panel_bytes = Layout(args.form).panel_bytes();
  const float *a = args.a + static_cast<std::ptrdiff_t>(first) * args.lda;
  float *y = args.y + static_cast<std::ptrdiff_t>(first) * args.ldy;
  const char *packed = static_cast<const char *>(args.packed);
  std::size_t j = begin;
  for (; np > 1 && j + (np - 1) * kNr < end; j += np * kNr)
    tile<Code, mr, np>(args, packed + j / kNr * panel_bytes, panel_bytes, a, y + j, end - j);
  for (; j < end; j += kNr) tile<Code, mr, 1>(args, packed + j / kNr * panel_bytes, panel_bytes, a, y + j, end - j);
}

template <class Code>
void run_codes(const CodesArgs &args) {
  // Every panel meets all rows while it is in cache.
  constexpr std::size_t kMr = 4, kColumns = 4 * kNr;
  for (std::size_t j = 0; j < args.n; j += kColumns) {
    const std::size_t end = j + kColumns < args.n ? j + kColumns : args.n;
    std::size_t i = 0;
    for (; i + kMr <= args.m; i += kMr) rows<Code, kMr, 1>(args, i, j, end);
    switch (args.m - i) {
      case 1:
        rows<Code, 1, 4>(args, i, j, end);
        break;
      case 2:
        rows<Code, 2, 2>(args, i, j, end);
        break;
      case 3:
        rows<Code, 3, 1>(args, i, j, end);
        break;
      default:
        break;
    }
  }
}

/// Rows of a panel of floats.
struct Rows {
  float *to, *row;
  std::size_t step;
  bool wide;

  [[gnu::always_inline]] void enter(std::size_t) {}
  [[gnu::always_inline]] void begin(std::size_t k) { row = to + k * step; }
  template <int c>
  [[gnu::always_inline]] void add(__m256 w) {
    if (c == 0 || wide) _mm256_storeu_ps(row + 8 * c, w);
  }
};

template <class Code>
void unpack_codes(const GemmRealPanel &to, const char *panel, const CodesForm &form) {
  Rows rows{to.elements, to.elements, to.row, to.columns > 8};
  each_row<Code, 1>(panel, 0, form, rows);
}

}  // namespace

#include "kernels/gemm_codes/entries.inc"

}  // namespace qtn::kernels::gemm_codes_avx2
