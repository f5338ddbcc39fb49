// SPDX-License-Identifier: Apache-2.0
// Products of rows by rows, of several at a time, so that what is read is used more than once.
#pragma once

#include "kernels/rows/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

template <int bytes>
struct RowProducts {
  using Floats [[gnu::vector_size(bytes)]] = float;
  static constexpr std::size_t kCount = bytes / sizeof(float), kLanes = 16;
  static constexpr int kParts = kLanes / kCount;
  static constexpr std::size_t kAhead = 1024;  // what is fetched before it is read
  // As many accumulators as registers hold.
  static constexpr int kRows = bytes == 64 ? 4 : bytes == 32 ? 2 : 1, kColumns = bytes == 64 ? 4 : 2;

  [[gnu::always_inline]] static Floats load(const float *p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }

  using Quad [[gnu::vector_size(16)]] = float;

  /// Sixteen sums become four: halves added to halves.
  [[gnu::always_inline]] static Quad fold(const Floats (&parts)[kParts]) {
    Quad lanes[4];
    __builtin_memcpy(lanes, parts, sizeof lanes);
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }
  [[gnu::always_inline]] static float sum_of(const Quad &v) { return (v[0] + v[2]) + (v[1] + v[3]); }

  template <int rows, int columns>
  static void block(const RowProductsArgs &args, std::size_t i, std::size_t j) {
    const std::size_t depth = args.k;
    const float *x = args.x + i * depth, *w = args.w + j * depth;
    Floats sums[rows][columns][kParts];
    unroll<rows>([&](auto r) {
      unroll<columns>([&](auto c) { unroll<kParts>([&](auto part) { sums[r][c][part] = Floats{}; }); });
    });
    std::size_t k = 0;
    for (; k + kLanes <= depth; k += kLanes)
      unroll<kParts>([&](auto part) {
        Floats of_x[rows];
        unroll<rows>([&](auto r) { of_x[r] = load(x + r * depth + k + part * kCount); });
        unroll<columns>([&](auto c) {
          const float *at = w + c * depth + k + part * kCount;
          __builtin_prefetch(at + kAhead);
          const Floats of_w = load(at);
          unroll<rows>([&](auto r) { sums[r][c][part] += of_x[r] * of_w; });
        });
      });
    float *y = args.y + i * args.y_row + j;
    unroll<rows>([&](auto r) {
      unroll<columns>([&](auto c) {
        float sum = sum_of(fold(sums[r][c]));
        for (std::size_t rest = k; rest < depth; ++rest) sum += x[r * depth + rest] * w[c * depth + rest];
        float &to = y[r * args.y_row + c];
        to = args.adds ? to + sum : sum;
      });
    });
  }

  template <int rows>
  static void columns(const RowProductsArgs &args, std::size_t i) {
    std::size_t j = 0;
    for (; j + kColumns <= args.n; j += kColumns) block<rows, kColumns>(args, i, j);
    for (; j < args.n; ++j) block<rows, 1>(args, i, j);
  }

  static void run(const RowProductsArgs &args) {
    std::size_t i = 0;
    for (; i + kRows <= args.m; i += kRows) columns<kRows>(args, i);
    for (; i < args.m; ++i) columns<1>(args, i);
  }
};

}  // namespace
}  // namespace qtn::kernels
