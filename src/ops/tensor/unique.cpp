// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/made.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"sorted", AttrSpec::kInt}};

/// Below, equal or above: NaN is equal to NaN, and above all numbers.
template <class T>
int compare(T a, T b) {
  if (a < b) return -1;
  if (a > b) return 1;
  return static_cast<int>(a != a) - static_cast<int>(b != b);
}

/// Slices of x along an axis in their order, each a row.
struct Rows {
  Rows(const Tensor &given, bool flat, std::size_t axis)
      : dim(flat ? given.count() : given.dim(axis)),
        inner(flat ? 1 : element_count(given.shape(), axis + 1, given.rank())),
        outer(flat ? 1 : element_count(given.shape(), 0, axis)) {}

  /// compare() of two rows, by the first element in which they differ.
  template <class T>
  int order(const T *x, std::int64_t a, std::int64_t b) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        if (const int sign = compare(x[(o * dim + a) * inner + i], x[(o * dim + b) * inner + i])) return sign;
    return 0;
  }

  std::int64_t dim, inner, outer;
};

struct Found {
  std::vector<std::int64_t> first, inverse, counts;
};

/// The rows that differ: their first places, how many there are of each, and which of them each row is.
template <class T>
Found find(const Rows &rows, const T *x, bool sorted) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.dim));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const int sign = rows.order(x, a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  Found f;
  f.inverse.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || rows.order(x, order[i - 1], order[i]) != 0) {
      f.first.push_back(order[i]);
      f.counts.push_back(0);
    }
    ++f.counts.back();
    f.inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(f.first.size()) - 1;
  }
  if (sorted) return f;
  // In the order in which they come.
  std::vector<std::size_t> by_place(f.first.size()), rank(f.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::sort(by_place.begin(), by_place.end(), [&](std::size_t a, std::size_t b) { return f.first[a] < f.first[b]; });
  Found g{{}, std::move(f.inverse), {}};
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    rank[by_place[i]] = i;
    g.first.push_back(f.first[by_place[i]]);
    g.counts.push_back(f.counts[by_place[i]]);
  }
  for (std::int64_t &i : g.inverse) i = static_cast<std::int64_t>(rank[static_cast<std::size_t>(i)]);
  return g;
}

/// Numbers that lie in the order of the elements of x: doubles for floats, else int64.
Tensor ordered(const Tensor &x) {
  const Tensor plain = to_plain(x);
  const Tensor keys(is_floating(plain.dtype()) ? QTN_FLOAT64 : QTN_INT64, plain.shape());
  dispatch(plain.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>)
      map_elements<T, double>(plain, keys, [](T v) { return static_cast<double>(v); });
    else  // the upper half of unsigned numbers becomes the positive ones
      map_elements<T, std::int64_t>(plain, keys, [](T v) {
        constexpr auto kShift = std::is_unsigned_v<T> ? std::uint64_t{1} << 63 : 0;
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(v) ^ kShift);
      });
  });
  return keys;
}

std::vector<Tensor> make(const Call &call) {
  const Tensor x = require_constant("Unique", "x", *call.in(0)).to_contiguous();
  const bool flat = !call.attrs.has("axis"), sorted = call.attrs.get_int("sorted", 1) != 0;
  const std::size_t axis = flat ? 0 : normalize_axis(call.attrs.get_int("axis", 0), x.rank(), "Unique");
  const Rows rows(x, flat, axis);
  const Tensor keys = ordered(x);
  const Found found = keys.dtype() == QTN_FLOAT64 ? find(rows, keys.as<const double>(), sorted)
                                                  : find(rows, keys.as<const std::int64_t>(), sorted);

  Shape shape = flat ? Shape{0} : x.shape();
  shape[axis] = static_cast<std::int64_t>(found.first.size());
  const Tensor y(x.dtype(), shape);
  const std::size_t bytes = static_cast<std::size_t>(rows.inner) * dtype_size(x.dtype());
  auto *to = y.as<std::byte>();
  for (std::int64_t o = 0; o < rows.outer && y.count() > 0; ++o)
    for (const std::int64_t row : found.first)
      to = std::copy_n(x.as<const std::byte>() + static_cast<std::size_t>(o * rows.dim + row) * bytes, bytes, to);
  std::vector<Tensor> outputs{y, Tensor::from_ints(found.first), Tensor::from_ints(found.inverse),
                              Tensor::from_ints(found.counts)};
  outputs.resize(call.output_count);
  return outputs;
}

qdtype output_dtype(const Attrs &, std::size_t output, qdtype moved) { return output == 0 ? moved : QTN_INT64; }

}  // namespace

const OpDef kUnique{.name = "Unique",
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .max_outputs = 4,
                    .attrs = kAttrs,
                    .any_type = true,
                    .infer = infer_made<make>,
                    .run = run_made<make>,
                    .shapes_from = {0, 1},
                    .make = make,
                    .output_dtype = output_dtype};

}  // namespace qtn::ops
