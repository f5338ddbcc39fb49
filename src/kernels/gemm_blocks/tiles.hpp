// SPDX-License-Identifier: Apache-2.0
// The loops over packed panels that kernels of vectors share, and what a block of activations comes to.
#pragma once

#include "kernels/gemm_blocks/panels.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// From the bits of the largest magnitude.
struct BlockScale {
  explicit BlockScale(std::uint32_t most) {
    float value;
    __builtin_memcpy(&value, &most, sizeof value);
    const bool finite = most < 0x7f800000;
    scale = finite ? value / 127.0f : __builtin_nanf("");
    normal = finite && scale >= __FLT_MIN__;
    inverse = 1.0f / scale;
  }

  float scale, inverse;
  bool normal;
};

template <class Quantize>
void each_block(const BlocksRows &to, const float *a, std::size_t m, const BlocksForm &form, const Quantize &quantize) {
  const std::size_t blocks = form.blocks();
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t b = 0; b < blocks; ++b)
      quantize(a + i * form.k + b * form.block, form.depth(b), to.q + i * form.row_bytes() + b * form.block_bytes(),
               to.scale[i * blocks + b], to.sum[i * blocks + b]);
}

inline std::int32_t word_at(const std::int8_t *q) {
  std::int32_t word;
  __builtin_memcpy(&word, q, sizeof word);
  return word;
}

template <class V, int bits, bool zeros>
struct BlocksTiles {
  using Integers = typename V::Integers;
  using Reals = typename V::Reals;
  static constexpr std::size_t kNr = 16, kLine = kNr * sizeof(float);
  static constexpr int kLanes = static_cast<int>(sizeof(Reals) / sizeof(float));
  using Layout = BlocksPanels<kNr>;

  /// mr rows from `first` by np panels, of which `columns` columns there are.
  template <int mr, int np>
  static void tile(const BlocksArgs &args, const char *panel, std::size_t panel_bytes, std::size_t first, float *y,
                   std::size_t columns) {
    constexpr int nv = np * V::kVectors;
    const BlocksForm &form = args.form;
    const Layout layout(form);
    const std::size_t blocks = form.blocks(), row_bytes = form.row_bytes();
    const char *base[np];
    unroll<np>([&](auto p) { base[p] = panel + static_cast<std::size_t>(p) * panel_bytes; });
    const auto of = [&](auto c) { return base[c / V::kVectors] + 4 * kLanes * (c % V::kVectors); };
    Reals total[mr][nv];
    unroll<nv>([&](auto c) { unroll<mr>([&](auto r) { total[r][c] = V::reals(of(c)); }); });
    const std::int8_t *q = args.a.q + first * row_bytes;
    const float *scale = args.a.scale + first * blocks;
    const std::int32_t *sum = args.a.sum + first * blocks;
    std::size_t at = layout.blocks_at();
    for (std::size_t b = 0; b < blocks; ++b, q += form.block_bytes()) {
      const std::size_t scales = at;
      Integers acc[mr][nv];
      if constexpr (zeros) {
        unroll<nv>([&](auto c) {
          const char *offsets = base[c / V::kVectors] + Layout::zeros_at() + b * kNr + kLanes * (c % V::kVectors);
          const Integers offset = V::bytes(offsets);
          unroll<mr>([&](auto r) {
            acc[r][c] = V::product(offset, V::all(-sum[r * blocks + b]));
            if constexpr (bits == 8 && V::kUp != 0) acc[r][c] = V::sum(acc[r][c], V::all(V::kUp * sum[r * blocks + b]));
          });
        });
      } else {
        unroll<mr>([&](auto r) {
          const Integers start = V::all(-(bits == 8 ? up_by(8) - V::kUp : up_by(4)) * sum[r * blocks + b]);
          unroll<nv>([&](auto c) { acc[r][c] = start; });
        });
      }
      at += kLine;
      const std::int8_t *x = q;
      for (std::size_t left = layout.words(form.depth(b)); left != 0; --left, at += kLine, x += 32 / bits) {
        Integers four[mr], next[mr];
        unroll<mr>([&](auto r) {
          four[r] = V::all(word_at(x + r * row_bytes));
          if constexpr (bits == 4) next[r] = V::all(word_at(x + r * row_bytes + 4));
        });
        unroll<np>([&](auto p) { __builtin_prefetch(base[p] + at + V::kAhead); });
        unroll<nv>([&](auto c) {
          const Integers words = V::words(of(c) + at);
          unroll<mr>([&](auto r) {
            if constexpr (bits == 4)
              acc[r][c] = V::dot_halves(acc[r][c], words, four[r], next[r]);
            else
              acc[r][c] = V::dot_bytes(acc[r][c], words, four[r]);
          });
        });
      }
      unroll<nv>([&](auto c) {
        const Reals of_weights = V::reals(of(c) + scales);
        unroll<mr>([&](auto r) {
          total[r][c] = V::add(total[r][c], acc[r][c], V::times(V::all(scale[r * blocks + b]), of_weights));
        });
      });
    }
    const Reals lo = V::all(args.lo), hi = V::all(args.hi);
    unroll<nv>([&](auto c) {
      unroll<mr>([&](auto r) { V::store(y + r * args.ldy + kLanes * c, total[r][c], lo, hi, columns, kLanes * c); });
    });
  }

  /// Columns [begin, end) of mr rows, np panels at a time, and what is left of them one row and panel at a time.
  template <int mr, int np>
  static void rows(const BlocksArgs &args, std::size_t first, std::size_t begin, std::size_t end) {
    const std::size_t panel_bytes = Layout(args.form).panel_bytes();
    float *y = args.y + static_cast<std::ptrdiff_t>(first) * args.ldy;
    const char *packed = static_cast<const char *>(args.packed);
    std::size_t j = begin;
    for (; j + (np - 1) * kNr < end; j += np * kNr)
      tile<mr, np>(args, packed + j / kNr * panel_bytes, panel_bytes, first, y + j, end - j);
    for (; j < end; j += kNr)
      for (std::size_t r = 0; r < mr; ++r)
        tile<1, 1>(args, packed + j / kNr * panel_bytes, panel_bytes, first + r,
                   y + static_cast<std::ptrdiff_t>(r) * args.ldy + j, end - j);
  }
};

/// One panel after the other, in the order of memory, by two rows: vectors of 128 and 256 bits hold no more.
template <class V, int bits, bool zeros>
void run_two_rows(const BlocksArgs &args) {
  using T = BlocksTiles<V, bits, zeros>;
  // Every panel meets all rows while it is in cache.
  constexpr std::size_t kColumns = 64;
  for (std::size_t j = 0; j < args.n; j += kColumns) {
    const std::size_t end = j + kColumns < args.n ? j + kColumns : args.n;
    std::size_t i = 0;
    for (; i + 2 <= args.m; i += 2) T::template rows<2, 1>(args, i, j, end);
    if (i < args.m) T::template rows<1, 1>(args, i, j, end);
  }
}

}  // namespace
}  // namespace qtn::kernels
