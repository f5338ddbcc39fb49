// SPDX-License-Identifier: Apache-2.0
// Products of rows by rows with a lane for each row of w: elements are turned on the way from memory, four of a row at a
// time, and each is read once for several rows of x.
#pragma once

#include <utility>

#include "kernels/real_functions.hpp"
#include "kernels/rows/rows.hpp"
#include "kernels/sum_blocks.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// As many rows as a vector has lanes, in groups of four.
template <int bytes>
struct TurnedFours {
  using Floats = typename Functions<bytes>::Floats;
  static constexpr int kCount = Functions<bytes>::kCount;

  /// Four elements each of kCount rows become four vectors of one element each.
  [[gnu::always_inline]] static void turn(const float *w, std::ptrdiff_t row, Floats (&v)[4]) {
    Floats rows[4];
    unroll<4>([&](auto r) { rows[r] = load(w + r * row, 4 * row); });
    const Floats a = by_one<0>(rows[0], rows[1], kAll), b = by_one<0>(rows[2], rows[3], kAll);
    const Floats c = by_one<2>(rows[0], rows[1], kAll), d = by_one<2>(rows[2], rows[3], kAll);
    v[0] = by_two<0>(a, b, kAll);
    v[1] = by_two<2>(a, b, kAll);
    v[2] = by_two<0>(c, d, kAll);
    v[3] = by_two<2>(c, d, kAll);
  }

  /// Four elements of rows that lie `step` apart, one row for each group.
  [[gnu::always_inline]] static Floats load(const float *row, std::ptrdiff_t step) {
    if constexpr (bytes == 16) {
      return Functions<16>::load(row);
    } else {
      using Half = TurnedFours<bytes / 2>;
      return join(Half::load(row, step), Half::load(row + kCount / 8 * step, step), kAll);
    }
  }

 private:
  template <int... i>
  using Lanes = std::integer_sequence<int, i...>;
  static constexpr auto kAll = std::make_integer_sequence<int, kCount>();

  template <class Half, int... i>
  [[gnu::always_inline]] static Floats join(Half a, Half b, Lanes<i...>) {
    return __builtin_shufflevector(a, b, i...);
  }
  /// In each group, two elements from the first one on: of a, of b, of a, of b.
  template <int first, int... i>
  [[gnu::always_inline]] static Floats by_one(Floats a, Floats b, Lanes<i...>) {
    return __builtin_shufflevector(a, b, (i / 4 * 4 + first + i % 4 / 2 + i % 2 * kCount)...);
  }
  /// The same two of a, then those of b.
  template <int first, int... i>
  [[gnu::always_inline]] static Floats by_two(Floats a, Floats b, Lanes<i...>) {
    return __builtin_shufflevector(a, b, (i / 4 * 4 + first + i % 2 + i % 4 / 2 * kCount)...);
  }
};

template <int bytes>
struct KeyProducts {
  template <int size, int rows, int vectors>
  static void block(const FewRowsArgs &args, std::size_t i, std::size_t j) {
    using V = Functions<size>;
    constexpr std::size_t kCount = V::kCount, kLine = 16;
    const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row,
                *w = args.w + static_cast<std::ptrdiff_t>(j) * args.w_row;
    const auto keys = [&](int v) { return w + v * static_cast<std::ptrdiff_t>(kCount) * args.w_row; };
    TileSums<V, rows, vectors> acc{};
    EarlierBlocks<TileSums<V, rows, vectors>> earlier(args.k);
    const auto add = [&](std::size_t k, auto v, typename V::Floats elements) __attribute__((always_inline)) {
      unroll<rows>([&](auto r) {
        acc.v[r][v] = V::fma(V::all(x[r * args.x_row + static_cast<std::ptrdiff_t>(k)]), elements, acc.v[r][v]);
      });
    };
    std::size_t k = 0;
    for (; k + 4 <= args.k; k += 4) {
      earlier.enter(k, acc);
      if (k % kLine == 0)  // what the next block begins with
        for (std::size_t key = 0; key < vectors * kCount; ++key)
          __builtin_prefetch(keys(vectors) + static_cast<std::ptrdiff_t>(key) * args.w_row + k);
      unroll<vectors>([&](auto v) {
        typename V::Floats four[4];
        TurnedFours<size>::turn(keys(v) + k, args.w_row, four);
        unroll<4>([&](auto e) { add(k + e, v, four[e]); });
      });
    }
    for (; k < args.k; ++k) {
      earlier.enter(k, acc);
      unroll<vectors>([&](auto v) {
        float elements[kCount];
        for (std::size_t key = 0; key < kCount; ++key)
          elements[key] = keys(v)[static_cast<std::ptrdiff_t>(key) * args.w_row + static_cast<std::ptrdiff_t>(k)];
        add(k, v, V::load(elements));
      });
    }
    earlier.end(acc);
    float *y = args.y + static_cast<std::ptrdiff_t>(i) * args.y_row + j;
    unroll<rows>(
        [&](auto r) { unroll<vectors>([&](auto v) { V::store(y + r * args.y_row + v * V::kCount, acc.v[r][v]); }); });
  }

  /// Keys by whole vectors, what is left of them by short ones, and then one by one.
  template <int rows>
  static void columns(const FewRowsArgs &args, std::size_t i) {
    constexpr std::size_t kCount = Functions<bytes>::kCount;
    std::size_t j = 0;
    if constexpr (rows == 1)
      for (; j + 2 * kCount <= args.n; j += 2 * kCount) block<bytes, rows, 2>(args, i, j);
    for (; j + kCount <= args.n; j += kCount) block<bytes, rows, 1>(args, i, j);
    for (; j + 4 <= args.n; j += 4) block<16, rows, 1>(args, i, j);
    for (; j < args.n; ++j)
      for (std::size_t r = i; r < i + rows; ++r) one(args, r, j);
  }

  static void one(const FewRowsArgs &args, std::size_t i, std::size_t j) {
    const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row,
                *w = args.w + static_cast<std::ptrdiff_t>(j) * args.w_row;
    BlockedSum sum(0);
    for (std::size_t k = 0; k < args.k; ++k) sum.add(k, x[k], w[k]);
    args.y[static_cast<std::ptrdiff_t>(i) * args.y_row + static_cast<std::ptrdiff_t>(j)] = sum.value();
  }

  static void run(const FewRowsArgs &args) {
    std::size_t i = 0;
    for (; i + 4 <= args.m; i += 4) columns<4>(args, i);
    for (; i < args.m; ++i) columns<1>(args, i);
  }
};

}  // namespace
}  // namespace qtn::kernels
