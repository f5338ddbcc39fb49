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
  // As many accumulators as registers hold.
  static constexpr int kRows = bytes == 64 ? 4 : bytes == 32 ? 2 : 1, kColumns = bytes == 64 ? 4 : 2;

  [[gnu::always_inline]] static Floats load(const float *p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }

  static float sum_of(const Floats (&parts)[kParts]) {
    float lanes[kLanes];
    __builtin_memcpy(lanes, parts, sizeof lanes);
    unroll<8>([&](auto i) { lanes[i] += lanes[i + 8]; });
    unroll<4>([&](auto i) { lanes[i] += lanes[i + 4]; });
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }

  template <int rows, int columns>
  static void block(const RowProductsArgs &args, std::size_t i, std::size_t j) {
    const float *x = args.x + i * args.k, *w = args.w + j * args.k;
    Floats sums[rows][columns][kParts];
    unroll<rows>([&](auto r) {
      unroll<columns>([&](auto c) { unroll<kParts>([&](auto part) { sums[r][c][part] = Floats{}; }); });
    });
    std::size_t k = 0;
    for (; k + kLanes <= args.k; k += kLanes)
      unroll<kParts>([&](auto part) {
        Floats of_x[rows];
        unroll<rows>([&](auto r) { of_x[r] = load(x + r * args.k + k + part * kCount); });
        unroll<columns>([&](auto c) {
          const Floats of_w = load(w + c * args.k + k + part * kCount);
          unroll<rows>([&](auto r) { sums[r][c][part] += of_x[r] * of_w; });
        });
      });
    unroll<rows>([&](auto r) {
      unroll<columns>([&](auto c) {
        float sum = sum_of(sums[r][c]);
        for (std::size_t rest = k; rest < args.k; ++rest) sum += x[r * args.k + rest] * w[c * args.k + rest];
        float &y = args.y[(i + r) * args.y_row + j + c];
        y = args.adds ? y + sum : sum;
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
