// SPDX-License-Identifier: Apache-2.0
// The loops of instruction sets without masks. Their header has Spread, Saturate, load() and store(); `V` adds Bytes, a
// vector, and all(byte), all(float).
#pragma once

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/rows.hpp"
#include "kernels/ends.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// How rows of so many bytes are read and written, whose last vector begins early enough to be whole: row(a, b, y, op), op
/// from two vectors to one. What it reads there comes before anything is written, because y may be an operand.
template <class V>
struct WholeVectors {
  using Bytes = typename V::Bytes;
  template <class Op>
  [[gnu::always_inline]] static void row(const BinaryArgs &args, const std::uint8_t *a, const std::uint8_t *b,
                                         std::uint8_t *y, Bytes a_first, Bytes b_first, const Op &op) {
    constexpr std::size_t kVector = sizeof(Bytes);
    const auto at = [&](std::size_t j) __attribute__((always_inline)) {
      return op(args.a_step ? load(a + j) : a_first, args.b_step ? load(b + j) : b_first);
    };
    const std::size_t last = args.columns - kVector;
    const Bytes end = at(last);
    for (std::size_t j = 0; j < last; j += kVector) store(y + j, at(j));
    store(y + last, end);
  }
};

/// Rows of fewer bytes than a vector has.
template <class V, class E>
struct OneVector {
  using Bytes = typename V::Bytes;
  template <class Op>
  [[gnu::always_inline]] static void row(const BinaryArgs &args, const std::uint8_t *a, const std::uint8_t *b,
                                         std::uint8_t *y, Bytes a_first, Bytes b_first, const Op &op) {
    E::write(y, args.columns,
             op(args.a_step ? E::read(a, args.columns) : a_first, args.b_step ? E::read(b, args.columns) : b_first));
  }
};

/// Those of one to three.
template <class V>
struct FewBytes {
  using Bytes = typename V::Bytes;
  template <class Op>
  [[gnu::always_inline]] static void row(const BinaryArgs &args, const std::uint8_t *a, const std::uint8_t *b,
                                         std::uint8_t *y, Bytes a_first, Bytes b_first, const Op &op) {
    alignas(sizeof(Bytes)) std::uint8_t of_a[sizeof(Bytes)], of_b[sizeof(Bytes)], of_y[sizeof(Bytes)];
    store(of_a, a_first);
    store(of_b, b_first);
    for (std::size_t j = 0; args.a_step && j < args.columns; ++j) of_a[j] = a[j];
    for (std::size_t j = 0; args.b_step && j < args.columns; ++j) of_b[j] = b[j];
    store(of_y, op(load(of_a), load(of_b)));
    for (std::size_t j = 0; j < args.columns; ++j) y[j] = of_y[j];
  }
};

template <class V, class Rows, class Op>
void run_rows(const BinaryArgs &args, const Op &op) {
  for (std::size_t i = 0; i < args.rows; ++i) {
    const auto row = static_cast<std::ptrdiff_t>(i);
    const std::uint8_t *a = args.a + row * args.a_row, *b = args.b + row * args.b_row;
    Rows::row(args, a, b, args.y + row * args.y_row, V::all(*a), V::all(*b), op);
  }
}

/// op: two vectors of float(a - za), float(b - zb) to real values in units of the output scale.
template <class V, bool small, class Op>
void run_blocks(const BinaryArgs &args, const Op &op) {
  using Bytes = typename V::Bytes;
  using Floats = decltype(V::all(0.0f));
  const Spread spread_a(args.a_zero), spread_b(args.b_zero);
  const Saturate saturate(args.range);
  const auto vector = [&](Bytes a, Bytes b) __attribute__((always_inline)) {
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
  if (args.columns >= sizeof(Bytes)) return run_rows<V, WholeVectors<V>>(args, vector);
  if (args.columns >= 16) return run_rows<V, OneVector<V, Ends<V, std::uint64_t, sizeof(Bytes) / 16>>>(args, vector);
  if (args.columns >= 8) return run_rows<V, OneVector<V, Ends<V, std::uint64_t, 1>>>(args, vector);
  if (args.columns >= kFewestOfEnds) return run_rows<V, OneVector<V, Ends<V, std::uint32_t, 1>>>(args, vector);
  if (args.columns > 0) run_rows<V, FewBytes<V>>(args, vector);
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
