// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduction.hpp"

#include <cstdlib>

#include "ops/common/reshaping.hpp"

namespace qtn::ops {

AxisSet reduced_axes(const char *op, const Call &call) {
  const std::size_t rank = call.in(0)->rank();
  AxisSet axes{};
  bool any = false;
  if (call.in(1))
    for (const std::size_t axis : constant_axes(op, *call.in(1), rank)) any = axes[axis] = true;
  const bool all = !any && call.attrs.get_int("noop_with_empty_axes", 0) == 0;
  if (all) std::fill_n(axes.begin(), rank, true);
  return axes;
}

Types infer_reduction(const char *op, const Call &call) {
  const Tensor &x = *call.in(0);
  const AxisSet axes = reduced_axes(op, call);
  const bool keep = call.attrs.get_int("keepdims", 1) != 0;
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!axes[i] || keep) shape.push_back(axes[i] ? 1 : x.dim(i));
  return {{x.dtype(), shape}};
}

void upgrade_reduction(OldNode &node) {
  if (node.opset < 18) ints_to_input(node, "axes", 1);
}

ReductionPlan::ReductionPlan(const Tensor &x, const AxisSet &axes, const Tensor &y) {
  const bool keep = x.rank() == y.rank();
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (axes[i]) {
      reduced.push_back(x.dim(i));
      x_reduced.push_back(x.strides()[i]);
    } else {
      y_kept.push_back(y.strides()[keep ? i : kept.size()]);
      kept.push_back(x.dim(i));
      x_kept.push_back(x.strides()[i]);
    }
  }
  if (!reduced.empty()) return;
  reduced.push_back(1);
  x_reduced.push_back(0);
}

ReductionPlan::Place ReductionPlan::kept_at(std::int64_t index) const {
  Place at;
  for (std::size_t i = kept.size(); i-- > 0; index /= kept[i]) {
    at.x += index % kept[i] * x_kept[i];
    at.y += index % kept[i] * y_kept[i];
  }
  return at;
}

std::int64_t ReductionPlan::reduced_at(std::int64_t index) const {
  std::int64_t at = 0;
  for (std::size_t i = reduced.size(); i-- > 0; index /= reduced[i]) at += index % reduced[i] * x_reduced[i];
  return at;
}

void walk_parts(const Tensor &x, const AxisSet &axes, const Tensor &y, std::int64_t few,
                void (*part)(const void *context, const ReducedPart &), const void *context) {
  if (y.count() == 0) return;
  const ReductionPlan plan(x, axes, y);
  const bool is_wide = !plan.kept.empty() &&
                       (std::abs(plan.x_kept.back()) < std::abs(plan.x_reduced.back()) || plan.reduced.back() < few);
  const std::int64_t inner = is_wide ? plan.kept.back() : 1;
  const std::int64_t x_next = is_wide ? plan.x_kept.back() : 0, y_next = is_wide ? plan.y_kept.back() : 0;
  for_neighbours(y.count() / inner, inner, [&](std::int64_t outer, std::int64_t first, auto count) {
    const ReductionPlan::Place at = plan.kept_at(outer * inner + first);
    part(context, {at.x, at.y, count, x_next, y_next, plan});
  });
}

Tensor repeated(const Tensor &y, const AxisSet &axes, const Shape &x) {
  const bool keep = x.size() == y.rank();
  Shape strides;
  for (std::size_t i = 0, kept = 0; i < x.size(); ++i) {
    strides.push_back(axes[i] ? 0 : y.strides()[keep ? i : kept]);
    kept += !axes[i];
  }
  return y.view(x, strides);
}

}  // namespace qtn::ops
