// SPDX-License-Identifier: Apache-2.0
// Tiles as x86 has them: a dword of A in every lane times vectors of columns of B. `V` has, besides what blocks.hpp
// asks:
//
//   Vector, kLanes             its dwords
//   load(p), zero(), sum(a, b)
//   add_products(acc, a, b)    adds to every lane the dot product of two dwords
//   kRegisters, kInFlight      vectors that fit; accumulators that keep the units busy, 0 where the order of sums matters
//   kInBlocks                  only where sums have the order of sum_blocks.hpp
#pragma once

#include <type_traits>

#include "kernels/gemm/blocks.hpp"
#include "kernels/gemm/rows.hpp"
#include "kernels/sum_blocks.hpp"

namespace qtn::kernels {
namespace {

/// A sum as it stands. Where an end takes something off it, the compiler would take that off the last product, and keep
/// what was there before, twice as many registers as there are.
template <class Vector>
[[gnu::always_inline]] inline Vector settled(Vector sum) {
  __asm__("" : "+v"(sum));
  return sum;
}

template <class V, int mr, int nv>
struct Accumulators {
  typename V::Vector v[mr][nv];

  void fill(const typename V::Vector (&b)[nv]) {
    unroll<mr>([&](auto r) { unroll<nv>([&](auto j) { v[r][j] = b[j]; }); });
  }

  [[gnu::always_inline]] void add_products(const Rows<mr> &rows, const typename V::Vector (&b)[nv]) {
    unroll<mr>([&](auto r) {
      typename V::Vector a;
      rows.template broadcast<r>(a);
      unroll<nv>([&](auto j) { v[r][j] = V::add_products(v[r][j], a, b[j]); });
    });
  }

  void add(const Accumulators &other) {
    unroll<mr>([&](auto r) { unroll<nv>([&](auto j) { v[r][j] = V::sum(v[r][j], other.v[r][j]); }); });
  }

  void move_to(Accumulators &sums) {
    unroll<mr>([&](auto r) {
      unroll<nv>([&](auto j) {
        sums.v[r][j] = V::sum(v[r][j], sums.v[r][j]);
        v[r][j] = V::zero();
      });
    });
  }
};

/// Few rows cannot hide the latency of a dot product: then k is split into interleaved chains, added at the end.
template <class V, int mr, int nv>
constexpr int chains() {
  if (V::kInFlight == 0) return 1;
  const int wanted = mr == 1 ? 4 : mr * nv < V::kInFlight ? 2 : 1;
  return (wanted * mr + 1) * nv + 1 <= V::kRegisters ? wanted : 1;
}

template <class V>
struct BroadcastTiles {
  template <int mr, int columns, class Store>
  static void run(const Tile &t, const Store &store) {
    constexpr int nv = columns / V::kLanes;
    constexpr int kChains = chains<V, mr, nv>();
    constexpr bool kInBlocks = requires { V::kInBlocks; };
    constexpr std::size_t kBytes = sizeof(typename V::Vector), kAhead = 8192;
    typename V::Vector b[nv];
    Accumulators<V, mr, nv> acc[kChains];
    unroll<nv>([&](auto j) { b[j] = V::zero(); });
    unroll<kChains>([&](auto c) { acc[c].fill(b); });
    unroll<nv>([&](auto j) { b[j] = V::load(t.bias + j * kBytes); });
    acc[0].fill(b);
    if constexpr (requires { store.begin(acc[0].v, t); }) store.begin(acc[0].v, t);
    // Integers have no blocks, and need no memory for them.
    using Earlier = std::conditional_t<kInBlocks, EarlierBlocks<Accumulators<V, mr, nv>>, std::size_t>;
    [[maybe_unused]] Earlier earlier(kInBlocks ? t.end() / V::kStep : 0);
    for (const GemmRun *run = t.runs; run != t.runs + t.run_count; ++run) {
      Rows<mr> rows(t.a + run->at, t.lda);
      const char *w = t.weights + run->k / V::kStep * nv * kBytes;
      const auto step = [&](Accumulators<V, mr, nv> & chain) __attribute__((always_inline)) {
        unroll<nv>([&](auto j) { b[j] = V::load(w + j * kBytes); });
        // B passes by while its panel is read again for each tile, and does not stay in the first level of cache.
        unroll<nv>([&](auto j) { __builtin_prefetch(w + kAhead + j * kBytes); });
        chain.add_products(rows, b);
        rows.step();
        w += nv * kBytes;
      };
      if constexpr (kInBlocks) {
        std::size_t k = run->k / V::kStep;
        for (std::size_t left = run->length / V::kStep, count; left != 0; left -= count, k += count) {
          count = in_sum_block(k, left);
          earlier.enter(k, acc[0]);
          for (std::size_t s = count; s != 0; --s) step(acc[0]);
        }
        continue;
      }
      std::size_t s = run->length / V::kStep;
      for (; s >= kChains; s -= kChains) unroll<kChains>([&](auto c) { step(acc[c]); });
      if constexpr (kChains > 1)
        for (; s != 0; --s) step(acc[0]);
    }
    if constexpr (kInBlocks) earlier.end(acc[0]);
    unroll<kChains - 1>([&](auto c) { acc[0].add(acc[c + 1]); });
    store(acc[0].v, t);
  }
};

}  // namespace
}  // namespace qtn::kernels
