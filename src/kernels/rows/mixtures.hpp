// SPDX-License-Identifier: Apache-2.0
// Sums of rows by factors, of as many columns at a time as registers hold, so that each row is read once for some sums.
#pragma once

#include "kernels/real_functions.hpp"
#include "kernels/rows/rows.hpp"
#include "kernels/sum_blocks.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

template <int bytes>
struct RowMixtures {
  template <int size, int rows, int vectors>
  static void block(const FewRowsArgs &args, std::size_t i, std::size_t j) {
    using V = Functions<size>;
    const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row, *w = args.w + j;
    TileSums<V, rows, vectors> acc{};
    EarlierBlocks<TileSums<V, rows, vectors>> earlier(args.k);
    for (std::size_t k = 0; k < args.k; ++k, w += args.w_row) {
      earlier.enter(k, acc);
      typename V::Floats of_w[vectors];
      unroll<vectors>([&](auto v) { of_w[v] = V::load(w + v * V::kCount); });
      unroll<rows>([&](auto r) {
        const typename V::Floats of_x = V::all(x[r * args.x_row + static_cast<std::ptrdiff_t>(k)]);
        unroll<vectors>([&](auto v) { acc.v[r][v] = V::fma(of_x, of_w[v], acc.v[r][v]); });
      });
    }
    earlier.end(acc);
    float *y = args.y + static_cast<std::ptrdiff_t>(i) * args.y_row + j;
    unroll<rows>(
        [&](auto r) { unroll<vectors>([&](auto v) { V::store(y + r * args.y_row + v * V::kCount, acc.v[r][v]); }); });
  }

  /// The last vector begins early enough to be whole; where there are fewer columns, shorter vectors take them.
  template <int size, int rows>
  static void columns(const FewRowsArgs &args, std::size_t i) {
    constexpr std::size_t kCount = size / sizeof(float);
    constexpr int kVectors = 8 / rows;
    if (args.n < kCount) {
      if constexpr (size > 16)
        columns<size / 2, rows>(args, i);
      else
        few_columns(args, i, rows);
      return;
    }
    std::size_t j = 0;
    for (; j + kVectors * kCount <= args.n; j += kVectors * kCount) block<size, rows, kVectors>(args, i, j);
    if constexpr (kVectors == 8)  // and half of them, as heads of attention have
      for (; j + 4 * kCount <= args.n; j += 4 * kCount) block<size, rows, 4>(args, i, j);
    for (; j + kCount <= args.n; j += kCount) block<size, rows, 1>(args, i, j);
    if (j < args.n) block<size, rows, 1>(args, i, args.n - kCount);
  }

  static void few_columns(const FewRowsArgs &args, std::size_t i, std::size_t rows) {
    for (std::size_t j = 0; j < args.n; ++j)
      for (std::size_t r = 0; r < rows; ++r) {
        const float *x = args.x + static_cast<std::ptrdiff_t>(i + r) * args.x_row, *w = args.w + j;
        BlockedSum sum(0);
        for (std::size_t k = 0; k < args.k; ++k, w += args.w_row) sum.add(k, x[k], *w);
        args.y[static_cast<std::ptrdiff_t>(i + r) * args.y_row + static_cast<std::ptrdiff_t>(j)] = sum.value();
      }
  }

  static void run(const FewRowsArgs &args) {
    std::size_t i = 0;
    for (; i + 4 <= args.m; i += 4) columns<bytes, 4>(args, i);
    for (; i + 2 <= args.m; i += 2) columns<bytes, 2>(args, i);
    for (; i < args.m; ++i) columns<bytes, 1>(args, i);
  }
};

}  // namespace
}  // namespace qtn::kernels
