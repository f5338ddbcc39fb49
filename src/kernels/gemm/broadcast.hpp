// SPDX-License-Identifier: Apache-2.0
// Tiles as x86 has them: a dword of A in every lane times vectors of columns of B. `V` has, besides what blocks.hpp
// asks:
//
//   Vector, kLanes             its dwords
//   load(p), zero(), sum(a, b)
//   add_products(acc, a, b)    adds to every lane the dot product of two dwords
//   kRegisters, kInFlight      vectors that fit; accumulators that keep the units busy, 0 where the order of sums matters
//   kInBlocks                  only where sums have the order of sum_blocks.hpp
//   kTogether                  steps after which pointers move in the larger tiles
//   kLeavesFetching            only where tiles do not fetch B ahead: the CPU does so by itself
#pragma once

#include <algorithm>
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

  /// Takes the dwords of rows that lie `at` bytes on.
  template <int at>
  [[gnu::always_inline]] void add_products(const Rows<mr> &rows, const typename V::Vector (&b)[nv]) {
    unroll<mr>([&](auto r) {
      typename V::Vector a;
      rows.template broadcast<r, at>(a);
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

/// Written out several times a loop needs fewer instructions, and fetches ahead in fewer of them. Small tiles of
/// integers wait for other things, and a Store may say that it `kIsRare`.
template <class V, int mr, int columns, class Store>
constexpr int steps_together() {
  constexpr int kChains = chains<V, mr, columns / V::kLanes>();
  constexpr bool kIsRare = requires { requires Store::kIsRare; };
  constexpr bool kInBlocks = requires { V::kInBlocks; };
  constexpr bool kGains = columns >= V::kNr && !kIsRare && (kInBlocks || 2 * mr > V::kMr);
  return kGains && V::kTogether > kChains ? V::kTogether : kChains;
}

constexpr std::ptrdiff_t kCacheLine = 64;  // bytes

/// Fetches what the next tile of a strip touches first: its rows where the last run begins, which lie lowest in an image,
/// and where its sums go.
template <int mr>
class NextRows {
 public:
  /// In so many turns.
  NextRows(const Tile &t, std::size_t turns)
      : rows_(t.a + mr * t.lda + (t.run_count == 0 ? 0 : t.runs[t.run_count - 1].at)),
        sums_(t.y + mr * t.ldy),
        row_step_(share(t.lda, turns)),
        sum_step_(share(t.ldy, turns)) {}

  [[gnu::always_inline]] void fetch() {
    __builtin_prefetch(rows_, 0, 2);
    __builtin_prefetch(sums_, 1);
    rows_ += row_step_;
    sums_ += sum_step_;
  }

 private:
  static std::ptrdiff_t share(std::ptrdiff_t stride, std::size_t turns) {
    return std::min(kCacheLine, mr * stride / static_cast<std::ptrdiff_t>(turns + 1));
  }

  const std::uint8_t *rows_;
  const char *sums_;
  std::ptrdiff_t row_step_, sum_step_;
};

template <class V>
struct BroadcastTiles {
  template <int mr, int columns, class Store>
  static void run(const Tile &t, const Store &store) {
    constexpr int nv = columns / V::kLanes;
    constexpr int kChains = chains<V, mr, nv>(), kTogether = steps_together<V, mr, columns, Store>();
    constexpr bool kInBlocks = requires { V::kInBlocks; };
    constexpr bool kFetchesAhead = !requires { V::kLeavesFetching; };
    constexpr int kOfPanel = std::min(columns, V::kNr) / V::kLanes;
    constexpr std::size_t kBytes = sizeof(typename V::Vector), kRow = kOfPanel * kBytes, kAhead = 8192;
    const auto place = [&](auto j) { return j / kOfPanel * t.panel + j % kOfPanel * static_cast<int>(kBytes); };
    constexpr int kFetched = kTogether < 4 ? 1 : kTogether / 2;  // lines of the next panel
    constexpr bool kFetchesRows = kInBlocks && 2 * mr > V::kMr;  // those of small tiles are near
    typename V::Vector b[nv];
    Accumulators<V, mr, nv> acc[kChains];
    unroll<nv>([&](auto j) { b[j] = V::zero(); });
    unroll<kChains>([&](auto c) { acc[c].fill(b); });
    unroll<nv>([&](auto j) { b[j] = V::load(t.bias + place(j)); });
    acc[0].fill(b);
    if constexpr (requires { store.begin(acc[0].v, t); }) store.begin(acc[0].v, t);
    // Integers have no blocks, and need no memory for them.
    using Earlier = std::conditional_t<kInBlocks, EarlierBlocks<Accumulators<V, mr, nv>>, std::size_t>;
    [[maybe_unused]] Earlier earlier(kInBlocks ? t.end() / V::kStep : 0);
    [[maybe_unused]] NextRows<mr> next_rows(t, t.end() / V::kStep / kTogether);
    const char *next = t.next;
    const std::ptrdiff_t next_step = std::min<std::ptrdiff_t>(kTogether * t.next_step, kFetched * kCacheLine);
    for (const GemmRun *run = t.runs; run != t.runs + t.run_count; ++run) {
      Rows<mr> rows(t.a + run->at, t.lda);
      const char *w = t.weights + run->k / V::kStep * kRow;
      const auto step = [&](auto s) __attribute__((always_inline)) {
        unroll<nv>([&](auto j) { b[j] = V::load(w + s * kRow + place(j)); });
        // B passes by while its panel is read again for each tile, and does not stay in the first level of cache.
        unroll<nv>([&](auto j) {
          if constexpr (kFetchesAhead && j * kBytes % kCacheLine == 0)
            __builtin_prefetch(w + kAhead + s * kRow + place(j));
        });
        acc[s % kChains].template add_products<4 * s>(rows, b);
      };
      const auto move = [&](int steps) __attribute__((always_inline)) {
        rows.move(4 * steps);
        w += steps * kRow;
      };
      std::size_t k = run->k / V::kStep, left = run->length / V::kStep;
      for (std::size_t count; left != 0; left -= count, k += count) {
        count = left;
        if constexpr (kInBlocks) {
          count = in_sum_block(k, left);
          earlier.enter(k, acc[0]);
        }
        std::size_t s = count;
        for (; s >= kTogether; s -= kTogether) {
          unroll<kTogether>(step);
          move(kTogether);
          unroll<kFetched>([&](auto line) { __builtin_prefetch(next + line * kCacheLine, 0, 2); });
          next += next_step;
          if constexpr (kFetchesRows) next_rows.fetch();
        }
        if constexpr (kTogether > 1)
          for (; s != 0; --s) {
            step(Index<0>{});
            move(1);
          }
      }
    }
    if constexpr (kInBlocks) earlier.end(acc[0]);
    unroll<kChains - 1>([&](auto c) { acc[0].add(acc[c + 1]); });
    store(acc[0].v, t);
  }
};

}  // namespace
}  // namespace qtn::kernels
