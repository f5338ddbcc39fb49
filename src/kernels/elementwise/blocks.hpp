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

/// One row: operands that repeat along it have no bytes but the first.
template <class V>
struct BinaryRow {
  const std::uint8_t *a, *b;  ///< null: repeats
  std::uint8_t *y;
  typename V::Bytes a_first, b_first;
};

/// How a row of so many bytes is read and written, op being from two vectors to one. The last vector begins early enough to
/// be whole; what it reads there comes before anything is written, because y may be an operand.
template <class V>
struct WholeVectors {
  using Bytes = typename V::Bytes;
  template <class Op>
  [[gnu::always_inline]] static void run(const BinaryRow<V> &row, std::size_t columns, const Op &op) {
    constexpr std::size_t kVector = sizeof(Bytes);
    const auto at = [&](std::size_t j) __attribute__((always_inline)) {
      return op(row.a ? load(row.a + j) : row.a_first, row.b ? load(row.b + j) : row.b_first);
    };
    const std::size_t last = columns - kVector;
    const Bytes end = at(last);
    for (std::size_t j = 0; j < last; j += kVector) store(row.y + j, at(j));
    store(row.y + last, end);
  }
};

/// Rows of fewer bytes than a vector has.
template <class V, class E>
struct OneVector {
  using Bytes = typename V::Bytes;
  template <class Op>
  [[gnu::always_inline]] static void run(const BinaryRow<V> &row, std::size_t columns, const Op &op) {
    E::write(row.y, columns,
             op(row.a ? E::read(row.a, columns) : row.a_first, row.b ? E::read(row.b, columns) : row.b_first));
  }
};

/// Those of one to three.
template <class V>
struct FewBytes {
  using Bytes = typename V::Bytes;
  template <class Op>
  [[gnu::always_inline]] static void run(const BinaryRow<V> &row, std::size_t columns, const Op &op) {
    alignas(sizeof(Bytes)) std::uint8_t of_a[sizeof(Bytes)], of_b[sizeof(Bytes)], of_y[sizeof(Bytes)];
    store(of_a, row.a_first);
    store(of_b, row.b_first);
    for (std::size_t j = 0; row.a && j < columns; ++j) of_a[j] = row.a[j];
    for (std::size_t j = 0; row.b && j < columns; ++j) of_b[j] = row.b[j];
    store(of_y, op(load(of_a), load(of_b)));
    for (std::size_t j = 0; j < columns; ++j) row.y[j] = of_y[j];
  }
};

template <class V, class Rows, class Op>
void run_rows(const BinaryArgs &args, const Op &op) {
  for (std::size_t i = 0; i < args.rows; ++i) {
    const auto number = static_cast<std::ptrdiff_t>(i);
    const std::uint8_t *a = args.a + number * args.a_row, *b = args.b + number * args.b_row;
    const BinaryRow<V> row{args.a_step ? a : nullptr, args.b_step ? b : nullptr, args.y + number * args.y_row,
                           V::all(*a), V::all(*b)};
    Rows::run(row, args.columns, op);
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
  if constexpr (!small) {
    if (args.columns >= 16) return run_rows<V, OneVector<V, Ends<V, std::uint64_t, sizeof(Bytes) / 16>>>(args, vector);
    if (args.columns >= 8) return run_rows<V, OneVector<V, Ends<V, std::uint64_t, 1>>>(args, vector);
    if (args.columns >= kFewestOfEnds) return run_rows<V, OneVector<V, Ends<V, std::uint32_t, 1>>>(args, vector);
    if (args.columns > 0) run_rows<V, FewBytes<V>>(args, vector);
  }
}

template <class V, class Op>
void run_blocks(const BinaryArgs &strided, const Op &op) {
  const BinaryArgs args = merged_rows(strided);
  const bool is_short = args.columns < sizeof(typename V::Bytes);  // what a vector takes is not what these wait for
  results_are_small(args) && !is_short ? run_blocks<V, true>(args, op) : run_blocks<V, false>(args, op);
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
