// SPDX-License-Identifier: Apache-2.0
// Rows reduced to one number each, on vectors of any length.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/extremes.hpp"
#include "kernels/rows/lanes.hpp"

namespace qtn::kernels {
namespace {

template <int bytes>
struct RowReductions : Rows<bytes> {
  using typename Rows<bytes>::Doubles;

  template <Addends of, class T>
  [[gnu::always_inline]] static T addend(T v) {
    if constexpr (of == Addends::squares) return v * v;
    if constexpr (of == Addends::magnitudes && std::is_same_v<T, double>) return std::fabs(v);
    if constexpr (of == Addends::magnitudes) return v < 0 ? -v : v;
    return v;
  }

  template <Addends of, int rows>
  [[gnu::always_inline]] static void add(const RowSumsArgs &args, std::size_t first) {
    const float *x = args.x + static_cast<std::ptrdiff_t>(first) * args.row;
    double totals[rows];
    Rows<bytes>::template sums<rows>(
        args.columns, [=](auto r, std::size_t i) { return addend<of>(Rows<bytes>::wide(x + r * args.row + i)); },
        [=](auto r, std::size_t i) { return addend<of>(static_cast<double>(x[r * args.row + i])); }, totals);
    for (int r = 0; r < rows; ++r) args.sums[first + r] += totals[r];
  }

  template <Addends of>
  static void sums_of(const RowSumsArgs &args) {
    constexpr std::size_t kTogether = 4;
    std::size_t r = 0;
    for (; r + kTogether <= args.rows; r += kTogether) add<of, kTogether>(args, r);
    for (; r < args.rows; ++r) add<of, 1>(args, r);
  }

  static void sums(const RowSumsArgs &args) {
    switch (args.of) {
      case Addends::numbers:
        return sums_of<Addends::numbers>(args);
      case Addends::magnitudes:
        return sums_of<Addends::magnitudes>(args);
      case Addends::squares:
        return sums_of<Addends::squares>(args);
    }
  }

  /// The last vectors begin early enough to be whole; a row shorter than one is left to shorter ones.
  template <int size, class F>
  [[gnu::always_inline]] static float extreme(const float *x, std::size_t count) {
    using V = Functions<size>;
    constexpr std::size_t kMany = 4 * V::kCount;
    if (count < V::kCount) {
      if constexpr (size > 16) return extreme<size / 2, F>(x, count);
      float found = x[0];
      for (std::size_t i = 1; i < count; ++i) found = F::of(found, x[i]);
      return found;
    }
    std::size_t i = 0;
    typename V::Floats found = V::load(x + count - V::kCount);
    if (count >= kMany) {
      typename V::Floats each[4];
      unroll<4>([&](auto v) { each[v] = V::load(x + v * V::kCount); });
      for (i = kMany; i + kMany <= count; i += kMany)
        unroll<4>([&](auto v) { each[v] = F::of(each[v], V::load(x + i + v * V::kCount)); });
      unroll<4>([&](auto v) { found = F::of(found, each[v]); });
    }
    for (; i + V::kCount < count; i += V::kCount) found = F::of(found, V::load(x + i));
    return folded_in_vectors<F>(found);
  }

  template <class F>
  static void extremes_by(const RowExtremesArgs &args) {
    const float *x = args.x;
    for (std::size_t r = 0; r < args.rows; ++r, x += args.row)
      args.y[r] = F::of(args.y[r], extreme<bytes, F>(x, args.columns));
  }

  static void extremes(const RowExtremesArgs &args) {
    args.largest ? extremes_by<Larger>(args) : extremes_by<Smaller>(args);
  }
};

}  // namespace
}  // namespace qtn::kernels
