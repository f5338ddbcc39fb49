// SPDX-License-Identifier: Apache-2.0
// Tiles by lanes: a vector holds kLanes steps of a row of A, and one lane at a time is multiplied by columns of B. `V`
// has, besides what blocks.hpp asks:
//
//   kLanes, row(p)                      that many steps of a row, bytes from p
//   weights(p)                          one step of four columns
//   add_products<lane>(acc, row, w)
#pragma once

#include "kernels/gemm/quad.hpp"

namespace qtn::kernels {
namespace {

template <class V>
struct LaneTiles : InPlace<V> {
  template <int mr, int columns, class Store>
  static void run(const Tile &t, const Store &store) {
    using Row = decltype(V::row(nullptr));
    constexpr int nv = columns / 4;
    constexpr std::size_t kBytes = sizeof(typename V::Element) * 4 * V::kStep;  // of four columns
    int32x4_t acc[mr][nv];
    unroll<nv>([&](auto j) {
      const int32x4_t bias = vld1q_s32(reinterpret_cast<const std::int32_t *>(t.bias) + 4 * j);
      unroll<mr>([&](auto r) { acc[r][j] = bias; });
    });
    const std::uint8_t *a[mr];
    const char *w = nullptr;
    Row rows[mr];
    const auto load_rows = [&]() __attribute__((always_inline)) {
      unroll<mr>([&](auto r) {
        rows[r] = V::row(a[r]);
        a[r] += V::kLanes * V::kStep;
      });
    };
    const auto add = [&](auto lane) __attribute__((always_inline)) {
      unroll<nv>([&](auto j) {
        const auto b = V::weights(w + j * kBytes);
        unroll<mr>([&](auto r) { acc[r][j] = V::template add_products<lane>(acc[r][j], rows[r], b); });
      });
      w += nv * kBytes;
    };
    for (const GemmRun *run = t.runs; run != t.runs + t.run_count; ++run) {
      unroll<mr>([&](auto r) { a[r] = t.a + run->at + r * t.lda; });
      w = t.weights + run->k / V::kStep * nv * kBytes;
      int s = static_cast<int>(run->length / V::kStep);
      for (; s >= V::kLanes; s -= V::kLanes) {
        load_rows();
        unroll<V::kLanes>(add);
      }
      if (s > 0) {
        load_rows();
        unroll<V::kLanes - 1>([&](auto lane) {
          if (lane < s) add(lane);
        });
      }
    }
    store(acc, t);
  }
};

}  // namespace
}  // namespace qtn::kernels
