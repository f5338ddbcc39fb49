// SPDX-License-Identifier: Apache-2.0
// What operators that reduce whole axes share: their axes, their shapes, and one loop.
#pragma once

#include <array>

#include "base/parallel.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/prepared.hpp"

namespace qtn::ops {

using AxisSet = std::array<bool, kMaxRank>;

inline constexpr AttrSpec kReductionAttrs[] = {{"keepdims", AttrSpec::kInt}, {"noop_with_empty_axes", AttrSpec::kInt}};

/// The axes that input 1 lists; where it lists none, all or (noop_with_empty_axes) none.
AxisSet reduced_axes(const char *op, const Call &call);

/// reduced_axes() of a call that infer() has checked.
struct ReducedAxes final : Prepared {
  explicit ReducedAxes(const Call &call) : axes(reduced_axes("Reduce", call)) {}
  const AxisSet axes;
};
inline AxisSet ready_axes(const Call &call) { return Ready<ReducedAxes>(call)->axes; }

/// The type of x and the shape that is left of it.
Types infer_reduction(const char *op, const Call &call);

/// Axes were an attribute before opset 18.
void upgrade_reduction(OldNode &node);

/// x apart: the axes kept and the axes reduced, in order.
struct ReductionPlan {
  ReductionPlan(const Tensor &x, const AxisSet &axes, const Tensor &y);
  Shape kept, x_kept, y_kept;  ///< dimensions, strides in x, strides in y
  Shape reduced, x_reduced;

  struct Place {
    std::int64_t x = 0, y = 0;
  };
  /// The kept element at `index`.
  Place kept_at(std::int64_t index) const {
    Place at;
    for (std::size_t i = kept.size(); i-- > 0; index /= kept[i]) {
      at.x += index % kept[i] * x_kept[i];
      at.y += index % kept[i] * y_kept[i];
    }
    return at;
  }
  /// Offset in x of the reduced element at `index`.
  std::int64_t reduced_at(std::int64_t index) const {
    std::int64_t at = 0;
    for (std::size_t i = reduced.size(); i-- > 0; index /= reduced[i]) at += index % reduced[i] * x_reduced[i];
    return at;
  }
};

/// y, the result of a reduction of x over the axes, read at the places of x.
Tensor repeated(const Tensor &y, const AxisSet &axes, const Shape &x);

/// y = finish(of all elements that meet in it, in the order of x, starting from `start`: sum = add(sum, element)).
/// Tensors of any strides.
template <class X, class Y, class Sum, class Add, class Finish>
void reduce(const Tensor &x, const AxisSet &axes, const Tensor &y, Sum start, Add &&add, Finish &&finish) {
  const ReductionPlan plan(x, axes, y);
  const std::size_t last = plan.reduced.size() - 1;
  const std::int64_t length = plan.reduced[last], step = plan.x_reduced[last];
  const std::int64_t rows = element_count(plan.reduced, 0, last);
  parallel_for(static_cast<std::size_t>(y.count()), [&](std::size_t index) {
    const ReductionPlan::Place place = plan.kept_at(static_cast<std::int64_t>(index));
    Sum sum = start;
    for (std::int64_t row = 0; length > 0 && row < rows; ++row) {
      const X *p = x.as<const X>() + place.x + plan.reduced_at(row * length);
      for (std::int64_t j = 0; j < length; ++j) sum = add(sum, p[j * step]);
    }
    y.as<Y>()[place.y] = finish(sum);
  });
}

}  // namespace qtn::ops
