// SPDX-License-Identifier: Apache-2.0
// What operators that reduce whole axes share: their axes, their shapes, and one loop.
#pragma once

#include <array>

#include "ops/common/elementwise.hpp"
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
  Place kept_at(std::int64_t index) const;
  /// Offset in x of the reduced element at `index`.
  std::int64_t reduced_at(std::int64_t index) const;
};

/// y, the result of a reduction of x over the axes, read at the places of x.
Tensor repeated(const Tensor &y, const AxisSet &axes, const Shape &x);

/// Elements of y whose own lie beside one another in x, at most kNeighbours of them.
struct ReducedPart {
  std::int64_t x, y;  ///< offsets of the first element
  std::int64_t count, x_next, y_next;
  const ReductionPlan &plan;
};

/// Where fewer elements meet in one, several of y are made side by side. Loops that are compiled for speed gain by that
/// in longer rows, too, since none of these waits for the one before.
inline constexpr std::int64_t kFew = 16, kFewForFastLoops = 128;

/// Calls part(context, part of y) for all of y, on several threads. Parts are of several elements where these lie closer
/// together than those that meet in one, so that x is read in the order of memory, and where few meet in one.
void walk_parts(const Tensor &x, const AxisSet &axes, const Tensor &y, std::int64_t few,
                void (*part)(const void *context, const ReducedPart &), const void *context);

/// y = finish(of all elements that meet in it, in the order of x, starting from `start`: sum = add(sum, element)).
/// Tensors of any strides.
template <class X, class Y, class Sum, class Add, class Finish>
void reduce(const Tensor &x, const AxisSet &axes, const Tensor &y, Sum start, Add &&add, Finish &&finish,
            std::int64_t few = kFew) {
  const auto part = [&](const ReducedPart &p) {
    Sum sums[kNeighbours];
    const std::int64_t count = p.count, next = p.x_next;
    std::fill_n(sums, count, start);
    const std::size_t last = p.plan.reduced.size() - 1;
    const std::int64_t length = p.plan.reduced[last], step = p.plan.x_reduced[last];
    const std::int64_t rows = length == 0 ? 0 : element_count(p.plan.reduced, 0, last);
    for (std::int64_t row = 0; row < rows; ++row) {
      const X *from = x.as<const X>() + p.x + p.plan.reduced_at(row * length);
      if (count == 1) {
        Sum sum = sums[0];
        for (std::int64_t j = 0; j < length; ++j) sum = add(sum, from[j * step]);
        sums[0] = sum;
      } else if (next == 1) {
        for (std::int64_t j = 0; j < length; ++j, from += step)
          for (std::int64_t i = 0; i < count; ++i) sums[i] = add(sums[i], from[i]);
      } else {
        for (std::int64_t j = 0; j < length; ++j, from += step)
          for (std::int64_t i = 0; i < count; ++i) sums[i] = add(sums[i], from[i * next]);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) y.as<Y>()[p.y + i * p.y_next] = finish(sums[i]);
  };
  using Part = decltype(part);
  walk_parts(
      x, axes, y, few, [](const void *context, const ReducedPart &p) { (*static_cast<Part *>(context))(p); }, &part);
}

}  // namespace qtn::ops
