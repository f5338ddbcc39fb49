// SPDX-License-Identifier: Apache-2.0
// What Softmax and LogSoftmax share: everything but the last step of a row.
#pragma once

#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

// Before opset 13 both ran over all axes from `axis` on as one; "_flatten" is that meaning. No file says it.
inline constexpr AttrSpec kSoftmaxAttrs[] = {{"axis", AttrSpec::kInt}, {"_flatten", AttrSpec::kInt}};

inline Types infer_softmax(const char *op, const Call &call) {
  const Types types = infer_real_unary(op, call);
  if (call.in(0)->rank() > 0) normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), op);
  return types;
}

/// Elements of a row, and how far they are from one another.
struct SoftmaxRows {
  SoftmaxRows(const char *op, const Call &call) {
    const Shape &shape = call.in(0)->shape();
    const std::size_t rank = shape.size();
    const std::size_t axis = rank == 0 ? 0 : normalize_axis(call.attrs.get_int("axis", -1), rank, op);
    const bool flatten = rank == 0 || call.attrs.get_int("_flatten", 0) != 0;
    length = flatten ? element_count(shape, axis, rank) : shape[axis];
    inner = flatten ? 1 : element_count(shape, axis + 1, rank);
  }
  std::int64_t length, inner;
};

/// Calls row(at, length, step) for each row of x, in parallel: its elements are at + k * step.
template <class Row>
void for_softmax_rows(const char *op, const Call &call, Row &&row) {
  const Tensor &x = *call.in(0);
  const SoftmaxRows rows(op, call);
  if (x.count() == 0) return;
  parallel_for(static_cast<std::size_t>(x.count() / rows.length), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    row(i / rows.inner * rows.length * rows.inner + i % rows.inner, rows.length, rows.inner);
  });
}

/// For each row of float64, finish(to, from, top, sum, length, step): to[k * step] holds exp(from[k * step] - top), top is
/// the largest of the row, and sum is that of the exponentials.
template <class Finish>
void run_softmax(const char *op, const Call &call, const Tensor &y, Finish &&finish) {
  for_softmax_rows(op, call, [&](std::int64_t at, std::int64_t length, std::int64_t step) {
    const double *from = call.in(0)->as<const double>() + at;
    double *to = y.as<double>() + at;
    double top = from[0], sum = 0;
    for (std::int64_t k = 1; k < length; ++k) top = std::max(top, from[k * step]);
    for (std::int64_t k = 0; k < length; ++k) sum += to[k * step] = std::exp(from[k * step] - top);
    finish(to, from, top, sum, length, step);
  });
}

inline void upgrade_softmax(OldNode &node) {
  if (node.opset >= 13) return;
  const std::int64_t axis = node.attrs.get_int("axis", 1);
  node.attrs.set("axis", axis);
  if (axis != -1) node.attrs.set("_flatten", std::int64_t{1});
}

}  // namespace qtn::ops
