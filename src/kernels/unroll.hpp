// SPDX-License-Identifier: Apache-2.0
// A loop written out by the compiler's front end. Arrays of vectors become registers only if every index is a constant
// early on; loops that the optimiser unrolls by itself come too late for that and leave the accumulators in memory.
#pragma once

namespace qtn::kernels {
namespace {

template <int i>
struct Index {
  constexpr operator int() const { return i; }
};

/// body(Index<0>), body(Index<1>), ..., body(Index<count - 1>)
template <int count, int i = 0, class Body>
[[gnu::always_inline]] constexpr void unroll(const Body &body) {
  if constexpr (i < count) {
    body(Index<i>{});
    unroll<count, i + 1>(body);
  }
}

}  // namespace
}  // namespace qtn::kernels
