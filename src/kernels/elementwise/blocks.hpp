// SPDX-License-Identifier: Apache-2.0
// The loops of instruction sets without masks. Their header has Spread, Saturate, load() and store(); `V` adds Bytes, a
// vector, and all(byte), all(float).
#pragma once

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// op: two vectors of float(a - za), float(b - zb) to real values in units of the output scale.
template <class V, bool small, class Op>
void run_blocks(const BinaryArgs &args, const Op &op) {
  using Bytes = typename V::Bytes;
  using Floats = decltype(V::all(0.0f));
  constexpr std::size_t kVector = sizeof(Bytes);
  const Spread spread_a(args.a_zero), spread_b(args.b_zero);
  const Saturate saturate(args.range);
  const auto vector = [&](Bytes a, Bytes b) {
    Floats fa[4], fb[4];
    spread_a(a, fa);
    spread_b(b, fb);
    decltype(saturate.round_any(fa[0])) q[4];
    unroll<4>([&](auto v) {
      const Floats real = op(fa[v], fb[v]);
      q[v] = small ? saturate.round_small(real) : saturate.round_any(real);
    });
    return saturate.bytes(saturate.words(q[0], q[1]), saturate.words(q[2], q[3]));
  };
  for (std::size_t i = 0; i < args.rows && args.columns > 0; ++i) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i);
    const std::uint8_t *a = args.a + row * args.a_row, *b = args.b + row * args.b_row;
    std::uint8_t *y = args.y + row * args.y_row;
    const Bytes a_first = V::all(*a), b_first = V::all(*b);
    std::size_t j = 0;
    for (; j + kVector <= args.columns; j += kVector)
      store(y + j, vector(args.a_step ? load(a + j) : a_first, args.b_step ? load(b + j) : b_first));
    if (const std::size_t left = args.columns - j; left > 0) {
      alignas(kVector) std::uint8_t tail[3][kVector] = {};
      store(tail[0], a_first);
      store(tail[1], b_first);
      if (args.a_step) __builtin_memcpy(tail[0], a + j, left);
      if (args.b_step) __builtin_memcpy(tail[1], b + j, left);
      store(tail[2], vector(load(tail[0]), load(tail[1])));
      __builtin_memcpy(y + j, tail[2], left);
    }
  }
}

template <class V, class Op>
void run_blocks(const BinaryArgs &strided, const Op &op) {
  const BinaryArgs args = merged_rows(strided);
  results_are_small(args) ? run_blocks<V, true>(args, op) : run_blocks<V, false>(args, op);
}

template <class V>
void add_blocks(const BinaryArgs &args) {
  const auto ma = V::all(args.a_multiplier), mb = V::all(args.b_multiplier);
  run_blocks<V>(args, [=](auto a, auto b) { return a * ma + b * mb; });
}

template <class V>
void mul_blocks(const BinaryArgs &args) {
  const auto m = V::all(args.a_multiplier);
  run_blocks<V>(args, [=](auto a, auto b) { return a * b * m; });  // a * b is exact, below 2^16
}

}  // namespace
}  // namespace qtn::kernels
