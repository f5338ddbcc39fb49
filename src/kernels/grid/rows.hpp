// SPDX-License-Identifier: Apache-2.0
// The loops over rows that the instruction sets share. `V` is one of them: types Floats and Ints of kLanes lanes, and
// the operations used below; load() widens kLanes stored cells to int32, store() narrows integers that fit the cell.
//
// The last vector of a row starts early enough to be whole, writing some elements twice; a row shorter than a vector
// goes through a buffer of one.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/fold.hpp"
#include "kernels/grid/grid.hpp"
#include "kernels/quotient.hpp"

namespace qtn::kernels {

namespace grid_ref {
void quantize(const GridQuantizeArgs &args);
void dequantize(const GridDequantizeArgs &args);
FloatRange range(const float *x, std::size_t count);
}  // namespace grid_ref

namespace {

/// Four-bit cells, two in a byte.
template <bool kSigned>
struct Nibbles {
  std::uint8_t bits;
};

template <class T>
struct CellOf {
  using Byte = T;
  static constexpr bool kPacked = false, kWide = sizeof(T) == 4;
  static constexpr int kBits = 8 * sizeof(T);
  template <class P>
  static P *at(P *row, std::size_t j) {
    return row + j;
  }
  static std::size_t bytes(std::size_t count) { return count * sizeof(T); }
  static void clear_high(T &) {}
};

template <bool kSigned>
struct CellOf<Nibbles<kSigned>> {
  using Byte = std::int8_t;  ///< holds both kinds
  static constexpr bool kPacked = true, kWide = false;
  static constexpr int kBits = 4;
  template <class P>
  static P *at(P *row, std::size_t j) {
    return row + j / 2;
  }
  static std::size_t bytes(std::size_t count) { return (count + 1) / 2; }
  static void clear_high(Nibbles<kSigned> &pair) { pair.bits &= 15; }
};

/// One grid for a whole row. `round` gives the integers; `nearly` what gives them once it is packed with saturation,
/// the zero point of `nearly_zero` is added to the words, and the bytes are clamped.
template <class V, bool kWide>
class Same {
 public:
  using F = typename V::Floats;
  using I = typename V::Ints;

  Same(const float *factors, const std::int32_t *zeros, std::int32_t lo, std::int32_t hi)
      : nearly_zero(V::all(static_cast<std::int16_t>(*zeros))),
        factor_(V::all(*factors)),
        zero_(V::all(*zeros)),
        lo_(lo),
        hi_(hi),
        centered_(*zeros == 0) {
    if constexpr (!kWide)
      least_ = V::all(static_cast<float>(lo - *zeros)), most_ = V::all(static_cast<float>(hi - *zeros));
  }

  static constexpr bool kOne = true;

  F factor(std::size_t) const { return factor_; }
  I round(F v, std::size_t) const {
    if constexpr (!kWide) return V::add(V::round(V::min(V::max(v, least_), most_)), zero_);
    return centered_ ? V::round_centered(v, lo_, hi_) : V::round_wide(v, zero_, lo_, hi_);
  }
  I nearly(F v, std::size_t) const { return V::round(V::min(v, most_)); }
  F steps(I q, std::size_t) const {
    if constexpr (!kWide) return V::to_floats(V::subtract(q, zero_));
    return centered_ ? V::to_floats(q) : V::steps_wide(q, zero_);
  }

  const I nearly_zero;

 private:
  F factor_;
  I zero_;
  std::int32_t lo_, hi_;
  bool centered_;  ///< the common zero point of wide integers, and the quick one
  F least_, most_;
};

/// A grid for each element of a row.
template <class V, bool kWide>
class Each {
 public:
  using F = typename V::Floats;
  using I = typename V::Ints;

  Each(const float *factors, const std::int32_t *zeros, std::int32_t lo, std::int32_t hi)
      : nearly_zero(V::all(std::int32_t{0})), factors_(factors), zeros_(zeros), lo_(lo), hi_(hi) {}

  static constexpr bool kOne = false;

  F factor(std::size_t j) const { return V::load(factors_ + j); }
  I round(F v, std::size_t j) const {
    if constexpr (kWide) return V::round_wide(v, V::load(zeros_ + j), lo_, hi_);
    return V::min(V::max(nearly(v, j), V::all(lo_)), V::all(hi_));
  }
  I nearly(F v, std::size_t j) const {
    // Far enough for every narrow cell, and safe to add a zero point to.
    constexpr float kFar = 1048576;
    return V::add(V::round(V::min(V::max(v, V::all(-kFar)), V::all(kFar))), V::load(zeros_ + j));
  }
  F steps(I q, std::size_t j) const {
    if constexpr (kWide) return V::steps_wide(q, V::load(zeros_ + j));
    return V::to_floats(V::subtract(q, V::load(zeros_ + j)));
  }

  const I nearly_zero;

 private:
  const float *factors_;
  const std::int32_t *zeros_;
  std::int32_t lo_, hi_;
};

/// Up to kLanes elements in whole vectors, parameters of their own included.
template <class V, class T>
struct Padded {
  explicit Padded(std::size_t count) : count_(count) {}

  template <class Value>
  static void copy(Value *to, const Value *from, std::size_t count) {
    std::memcpy(to, from, count * sizeof(Value));
  }

  const float *factors(const float *from, bool each) {
    copy(factor, from, each ? count_ : 1);
    return factor;
  }
  const std::int32_t *zeros(const std::int32_t *from, bool each) {
    copy(zero, from, each ? count_ : 1);
    return zero;
  }

  alignas(64) float x[V::kLanes] = {};
  alignas(64) float factor[V::kLanes] = {};
  alignas(64) std::int32_t zero[V::kLanes] = {};
  alignas(64) T q[V::kLanes] = {};

 private:
  std::size_t count_;
};

/// Where rows begin with whole lines, stores around the caches fill them.
template <class Args>
bool can_stream(const Args &args, const void *to, std::size_t row_bytes) {
  return args.stream && reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && (args.rows == 1 || row_bytes % 64 == 0);
}

template <class V, class T, Rounding rounding, class Grid>
struct QuantizeRow {
  static constexpr std::size_t kLanes = V::kLanes;
  static constexpr bool kByProducts = rounding == Rounding::division && Grid::kOne && CellOf<T>::kBits <= 8;
  using F = typename V::Floats;
  using I = typename V::Ints;

  F scaled(std::size_t j) const {
    const F v = V::load(x + j), f = grid.factor(j);
    return rounding == Rounding::reciprocal ? V::multiply(v, f) : V::divide(v, f);
  }

  void one(T *q, std::size_t j, bool stream) const {
    V::store(CellOf<T>::at(q, j), grid.round(V::or_zero(scaled(j)), j), stream);
  }

  /// Four vectors at once share the search for NaN, for quotients near a tie, and the packing.
  void four(T *q, std::size_t j, F inverse, bool stream) const {
    const std::size_t k = j + kLanes, l = k + kLanes, m = l + kLanes;
    const auto quotient = [&](std::size_t at) {
      return kByProducts ? V::multiply(V::load(x + at), inverse) : scaled(at);
    };
    F a = quotient(j), b = quotient(k), c = quotient(l), d = quotient(m);
    const bool left = kByProducts ? V::any_unsure(a, b) : V::any_nan(a, b),
               right = kByProducts ? V::any_unsure(c, d) : V::any_nan(c, d);
    if (__builtin_expect(left | right, false))
      a = V::or_zero(scaled(j)), b = V::or_zero(scaled(k)), c = V::or_zero(scaled(l)), d = V::or_zero(scaled(m));
    if constexpr (CellOf<T>::kBits == 16) {
      V::put(q + j, V::words(T{}, grid.round(a, j), grid.round(b, k)), stream);
      V::put(q + l, V::words(T{}, grid.round(c, l), grid.round(d, m)), stream);
    } else {
      using Byte = typename CellOf<T>::Byte;
      const auto words = [&](I v, I w) { return V::add_words(V::words(std::int16_t{}, v, w), grid.nearly_zero); };
      const I bytes =
          V::bytes(Byte{}, words(grid.nearly(a, j), grid.nearly(b, k)), words(grid.nearly(c, l), grid.nearly(d, m)));
      const I clamped =
          V::min(V::max(bytes, V::all(static_cast<Byte>(lo)), Byte{}), V::all(static_cast<Byte>(hi)), Byte{});
      if constexpr (CellOf<T>::kPacked)
        V::put_nibbles(q + j / 2, clamped, stream);
      else
        V::put(q + j, clamped, stream);
    }
  }

  /// As many whole vectors as there are in n elements.
  void run(T *q, std::size_t n, bool stream) const {
    std::size_t j = 0;
    if constexpr (CellOf<T>::kBits < 32)
      if (n >= 4 * kLanes) {
        const F inverse = kByProducts ? V::all(inverse_of(scale)) : F{};
        for (; j + 4 * kLanes <= n; j += 4 * kLanes) four(q, j, inverse, stream);
      }
    for (; j + kLanes <= n; j += kLanes) one(q, j, stream);
  }

  const Grid &grid;
  const float *x;
  std::int32_t lo, hi;
  float scale;  ///< where it is one
};

template <class V, class T, Rounding rounding, template <class, bool> class GridOf>
void quantize_rows(const GridQuantizeArgs &args) {
  using Grid = GridOf<V, CellOf<T>::kWide>;
  constexpr bool kEach = std::is_same_v<Grid, Each<V, CellOf<T>::kWide>>;
  const std::size_t n = args.columns, row_bytes = CellOf<T>::bytes(n), rest = n % V::kLanes, whole = n - rest;
  const bool stream = can_stream(args, args.q, row_bytes);
  const float *x = args.x;
  char *to = static_cast<char *>(args.q);
  for (std::size_t i = 0; i < args.rows; ++i, x += n, to += row_bytes) {
    T *q = reinterpret_cast<T *>(to);
    const std::size_t at = args.per == GridPer::row ? i : 0;
    if (whole) {
      const Grid grid(args.factor + at, args.zero + at, args.lo, args.hi);
      const QuantizeRow<V, T, rounding, Grid> row{grid, x, args.lo, args.hi, args.factor[at]};
      row.run(q, n, stream);
      if (rest && !CellOf<T>::kPacked) row.one(q, n - V::kLanes, false);
    }
    if (rest && (!whole || CellOf<T>::kPacked)) {
      Padded<V, T> padded(rest);
      padded.copy(padded.x, x + whole, rest);
      const std::size_t first = at + (kEach ? whole : 0);
      const Grid grid(padded.factors(args.factor + first, kEach), padded.zeros(args.zero + first, kEach), args.lo,
                      args.hi);
      QuantizeRow<V, T, rounding, Grid>{grid, padded.x, args.lo, args.hi, args.factor[at]}.one(padded.q, 0, false);
      if (CellOf<T>::kPacked && rest % 2) CellOf<T>::clear_high(padded.q[rest / 2]);
      std::memcpy(CellOf<T>::at(q, whole), padded.q, CellOf<T>::bytes(rest));
    }
  }
  if (stream) V::fence();
}

template <class V, class T, bool divide, class Grid>
struct DequantizeRow {
  typename V::Floats operator()(std::size_t j) const {
    const typename V::Floats steps = grid.steps(V::load(CellOf<T>::at(q, j)), j);
    return divide ? V::divide(steps, grid.factor(j)) : V::multiply(steps, grid.factor(j));
  }

  void run(float *x, std::size_t n, bool stream) const {
    for (std::size_t j = 0; j + V::kLanes <= n; j += V::kLanes) V::store(x + j, (*this)(j), stream);
  }

  const Grid &grid;
  const T *q;
};

template <class V, class T, bool divide, template <class, bool> class GridOf>
void dequantize_rows(const GridDequantizeArgs &args) {
  using Grid = GridOf<V, CellOf<T>::kWide>;
  constexpr bool kEach = std::is_same_v<Grid, Each<V, CellOf<T>::kWide>>;
  const std::size_t n = args.columns, row_bytes = CellOf<T>::bytes(n), rest = n % V::kLanes, whole = n - rest;
  const bool stream = can_stream(args, args.x, n * sizeof(float));
  const char *from = static_cast<const char *>(args.q);
  float *x = args.x;
  for (std::size_t i = 0; i < args.rows; ++i, x += n, from += row_bytes) {
    const T *q = reinterpret_cast<const T *>(from);
    const std::size_t at = args.per == GridPer::row ? i : 0;
    if (whole) {
      const Grid grid(args.factor + at, args.zero + at, 0, 0);
      const DequantizeRow<V, T, divide, Grid> row{grid, q};
      row.run(x, n, stream);
      if (rest && !CellOf<T>::kPacked) V::store(x + n - V::kLanes, row(n - V::kLanes), false);
    }
    if (rest && (!whole || CellOf<T>::kPacked)) {
      Padded<V, T> padded(rest);
      std::memcpy(padded.q, CellOf<T>::at(q, whole), CellOf<T>::bytes(rest));
      const std::size_t first = at + (kEach ? whole : 0);
      const Grid grid(padded.factors(args.factor + first, kEach), padded.zeros(args.zero + first, kEach), 0, 0);
      DequantizeRow<V, T, divide, Grid>{grid, padded.q}.run(padded.x, V::kLanes, false);
      padded.copy(x + whole, padded.x, rest);
    }
  }
  if (stream) V::fence();
}

/// body(T{}) with the type of a cell; false for cells that `ref` alone knows.
template <class Body>
bool with_cell(Cell cell, const Body &body) {
  switch (cell) {
    case Cell::u8:
      return body(std::uint8_t{}), true;
    case Cell::i8:
      return body(std::int8_t{}), true;
    case Cell::u16:
      return body(std::uint16_t{}), true;
    case Cell::i16:
      return body(std::int16_t{}), true;
    case Cell::i32:
      return body(std::int32_t{}), true;
    case Cell::u4:
      return body(Nibbles<false>{}), true;
    case Cell::i4:
      return body(Nibbles<true>{}), true;
    default:
      return false;
  }
}

template <class V>
void quantize_grid(const GridQuantizeArgs &args) {
  const bool known =
      args.rounding != Rounding::half_away && with_cell(args.cell, [&](auto cell) {
        using T = decltype(cell);
        constexpr Rounding kReciprocal = Rounding::reciprocal, kDivision = Rounding::division;
        const bool reciprocal = args.rounding == kReciprocal;
        if (args.per == GridPer::column)
          reciprocal ? quantize_rows<V, T, kReciprocal, Each>(args) : quantize_rows<V, T, kDivision, Each>(args);
        else
          reciprocal ? quantize_rows<V, T, kReciprocal, Same>(args) : quantize_rows<V, T, kDivision, Same>(args);
      });
  if (!known) grid_ref::quantize(args);
}

template <class V>
void dequantize_grid(const GridDequantizeArgs &args) {
  const bool known = with_cell(args.cell, [&](auto cell) {
    using T = decltype(cell);
    if (args.per == GridPer::column)
      args.divide ? dequantize_rows<V, T, true, Each>(args) : dequantize_rows<V, T, false, Each>(args);
    else
      args.divide ? dequantize_rows<V, T, true, Same>(args) : dequantize_rows<V, T, false, Same>(args);
  });
  if (!known) grid_ref::dequantize(args);
}

/// Four chains of comparisons; the vectors of an end are read twice rather than in part.
template <class V>
FloatRange range_of(const float *x, std::size_t count) {
  using F = typename V::Floats;
  constexpr std::size_t kLanes = V::kLanes;
  if (count < kLanes) return grid_ref::range(x, count);
  F lo[4], hi[4];
  for (int i = 0; i < 4; ++i) lo[i] = hi[i] = V::all(0.0f);
  bool nan = false;
  const auto see = [&](int i, std::size_t j) {
    const F v = V::load(x + j);
    lo[i] = V::min(v, lo[i]);
    hi[i] = V::max(v, hi[i]);
    return v;
  };
  std::size_t j = 0;
  for (; j + 4 * kLanes <= count; j += 4 * kLanes) {
    const F a = see(0, j), b = see(1, j + kLanes), c = see(2, j + 2 * kLanes), d = see(3, j + 3 * kLanes);
    nan |= V::any_nan(a, b);
    nan |= V::any_nan(c, d);
  }
  for (; j < count; j += kLanes) {
    const F a = see(0, j + kLanes <= count ? j : count - kLanes);
    nan |= V::any_nan(a, a);
  }
  const F low = V::min(V::min(lo[0], lo[1]), V::min(lo[2], lo[3])),
          high = V::max(V::max(hi[0], hi[1]), V::max(hi[2], hi[3]));
  return {folded<float>(low, [](auto a, auto b) { return b < a ? b : a; }),
          folded<float>(high, [](auto a, auto b) { return b > a ? b : a; }), nan};
}

}  // namespace
}  // namespace qtn::kernels
