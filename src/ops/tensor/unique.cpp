// SPDX-License-Identifier: Apache-2.0
#include <compare>
#include <numeric>

#include "base/counted.hpp"
#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/made.hpp"
#include "ops/common/rank.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"sorted", AttrSpec::kInt}};

/// Slices of x along an axis in their order, each a row.
struct Rows {
  Rows(const Tensor &given, bool flat, std::size_t axis)
      : dim(flat ? given.count() : given.dim(axis)),
        inner(flat ? 1 : element_count(given.shape(), axis + 1, given.rank())),
        outer(flat ? 1 : element_count(given.shape(), 0, axis)) {}

  /// Whether row a is below, equal to or above row b, by the ranks of the first elements in which they differ.
  std::strong_ordering order(const std::int64_t *ranks, std::int64_t a, std::int64_t b) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        if (const auto sign = ranks[(o * dim + a) * inner + i] <=> ranks[(o * dim + b) * inner + i]; sign != 0)
          return sign;
    return std::strong_ordering::equal;
  }

  std::int64_t dim, inner, outer;
};

struct Found {
  std::vector<std::int64_t> first;
  CountedVector<std::int64_t> inverse;
  std::vector<std::int64_t> counts;
};

/// The same of rows without elements, of which there may be any number in no memory: they are all equal.
Found find_empty(const Rows &rows, bool wants_inverse) {
  if (rows.dim == 0) return {};
  return {{0}, CountedVector<std::int64_t>(wants_inverse ? static_cast<std::size_t>(rows.dim) : 0), {rows.dim}};
}

/// The rows that differ: their first places, how many there are of each, and which of them each row is.
Found find(const Rows &rows, const std::int64_t *ranks, bool sorted) {
  std::vector<RankedPlace> order;  // by the first element of a row, which decides between most
  order.reserve(static_cast<std::size_t>(rows.dim));
  const bool is_one = rows.inner * rows.outer == 1;
  for (std::int64_t i = 0; i < rows.dim; ++i) order.push_back({ranks[i * rows.inner], i});
  const auto compare = [&](const RankedPlace &a, const RankedPlace &b) {
    return a.rank != b.rank || is_one ? a.rank <=> b.rank : rows.order(ranks, a.index, b.index);
  };
  std::sort(order.begin(), order.end(), [&](const RankedPlace &a, const RankedPlace &b) {
    const auto sign = compare(a, b);
    return sign != 0 ? sign < 0 : a.index < b.index;
  });
  Found f;
  f.inverse.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      f.first.push_back(order[i].index);
      f.counts.push_back(0);
    }
    ++f.counts.back();
    f.inverse[static_cast<std::size_t>(order[i].index)] = static_cast<std::int64_t>(f.first.size()) - 1;
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

Tensor ranks_of(const Tensor &x) {
  const Tensor plain = to_plain(x), ranks(QTN_INT64, plain.shape());
  dispatch(plain.dtype(), [&](auto zero) {
    map_elements<decltype(zero), std::int64_t>(plain, ranks, [](auto v) { return std::int64_t{rank_of(v)}; });
  });
  return ranks;
}

std::vector<Tensor> make(const Call &call) {
  const Tensor x = require_constant("Unique", "x", *call.in(0)).to_contiguous();
  const bool flat = !call.attrs.has("axis"), sorted = call.attrs.get_int("sorted", 1) != 0;
  const std::size_t axis = flat ? 0 : normalize_axis(call.attrs.get_int("axis", 0), x.rank(), "Unique");
  const Rows rows(x, flat, axis);
  const Found found = rows.inner * rows.outer == 0 ? find_empty(rows, call.output_count > 2)
                                                   : find(rows, ranks_of(x).as<const std::int64_t>(), sorted);

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
