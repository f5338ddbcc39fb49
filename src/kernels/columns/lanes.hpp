// SPDX-License-Identifier: Apache-2.0
// The loops on vectors of any length.
#pragma once

#include "kernels/columns/columns.hpp"
#include "kernels/doubles.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

template <int bytes>
struct Columns : Vectors<bytes> {
  using typename Vectors<bytes>::Doubles;
  using typename Vectors<bytes>::Floats;
  using Vectors<bytes>::narrow;
  static constexpr std::size_t kCount = bytes / sizeof(double);

  template <class Vector, class T>
  [[gnu::always_inline]] static Vector load(const T *p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  [[gnu::always_inline]] static Doubles wide(const float *p) { return Vectors<bytes>::wide(load<Floats>(p)); }

  template <bool squares, int vectors>
  static void add_block(const ColumnSumsArgs &args, std::size_t first) {
    Doubles centres[vectors] = {}, sums[vectors];
    if constexpr (squares) __builtin_memcpy(centres, args.centres + first, sizeof centres);
    __builtin_memcpy(sums, args.sums + first, sizeof sums);
    const float *x = args.x + first;
    for (std::size_t r = 0; r < args.rows; ++r, x += args.row)
      unroll<vectors>([&](auto v) {
        Doubles at = wide(x + v * kCount);
        if constexpr (squares) at = (at - centres[v]) * (at - centres[v]);
        sums[v] += at;
      });
    __builtin_memcpy(args.sums + first, sums, sizeof sums);
  }

  template <bool squares>
  static void add(const ColumnSumsArgs &args) {
    constexpr int kVectors = 4;
    std::size_t c = 0;
    for (; c + kVectors * kCount <= args.columns; c += kVectors * kCount) add_block<squares, kVectors>(args, c);
    for (; c + kCount <= args.columns; c += kCount) add_block<squares, 1>(args, c);
    for (; c < args.columns; ++c) {
      const float *x = args.x + c;
      for (std::size_t r = 0; r < args.rows; ++r, x += args.row) {
        auto at = static_cast<double>(*x);
        if constexpr (squares) at = (at - args.centres[c]) * (at - args.centres[c]);
        args.sums[c] += at;
      }
    }
  }

  static void standardize(const StandardizeArgs &args) {
    const Floats lo = args.lo - Floats{}, hi = args.hi - Floats{};
    const float *x = args.x;
    float *y = args.y;
    for (std::size_t r = 0; r < args.rows; ++r, x += args.x_row, y += args.y_row) {
      std::size_t i = 0;
      for (; i + kCount <= args.columns; i += kCount) {
        const Doubles at = (wide(x + i) - load<Doubles>(args.centres + i)) * load<Doubles>(args.gains + i) +
                           load<Doubles>(args.shifts + i);
        Floats v = narrow(at);
        v = v <= lo ? lo : v;  // of two zeros the bound: Relu has no zero below 0
        v = v > hi ? hi : v;
        __builtin_memcpy(y + i, &v, sizeof v);
      }
      for (; i < args.columns; ++i) {
        auto v = static_cast<float>((static_cast<double>(x[i]) - args.centres[i]) * args.gains[i] + args.shifts[i]);
        v = v <= args.lo ? args.lo : v;
        y[i] = v > args.hi ? args.hi : v;
      }
    }
  }
};

}  // namespace
}  // namespace qtn::kernels
