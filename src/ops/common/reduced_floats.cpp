// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduced_floats.hpp"

#include <cmath>

#include "kernels/columns/columns.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/extremum.hpp"

namespace qtn::ops {
namespace {

using kernels::Arithmetic;

/// The axes of x, joined where they allow it, apart as those of y and those that are reduced.
struct JoinedPlan {
  JoinedPlan(const Tensor &x, const AxisSet &axes, const Tensor &y) {
    const std::array<Shape, 2> strides{x.strides(), repeated(y, axes, x.shape()).strides()};
    const Walk walk(x.shape(), strides);
    for (std::size_t axis = 0; axis < walk.dims.size(); ++axis) {
      // An axis of length 1 has no stride of its own.
      const bool reduces = walk.strides[1][axis] == 0;
      (reduces ? reduced : kept).push_back(walk.dims[axis]);
      (reduces ? x_reduced : x_kept).push_back(walk.strides[0][axis]);
      if (!reduces) y_kept.push_back(walk.strides[1][axis]);
      last_is_reduced = reduces;
    }
  }
  Shape kept, x_kept, y_kept, reduced, x_reduced;
  bool last_is_reduced = false;

  /// Whether the elements of rows follow one another.
  bool has_rows() const { return last_is_reduced ? x_reduced.back() == 1 : x_kept.back() == 1 && y_kept.back() == 1; }

  static std::int64_t at(const Shape &dims, const Shape &strides, std::size_t count, std::int64_t index) {
    std::int64_t place = 0;
    for (std::size_t i = count; i-- > 0; index /= dims[i]) place += index % dims[i] * strides[i];
    return place;
  }
};

/// Each element of y is finish(what whole rows come to): total = add(total, row, length).
template <class Total, class Add, class Finish>
void reduce_rows(const JoinedPlan &plan, const Tensor &x, const Tensor &y, Total start, Add &&add, Finish &&finish) {
  const std::size_t outer = plan.reduced.size() - 1;
  const std::int64_t length = plan.reduced[outer], rows = element_count(plan.reduced, 0, outer);
  parallel_for(static_cast<std::size_t>(y.count()), [&](std::size_t task) {
    const auto index = static_cast<std::int64_t>(task);
    const float *from = x.as<const float>() + JoinedPlan::at(plan.kept, plan.x_kept, plan.kept.size(), index);
    Total total = start;
    for (std::int64_t r = 0; r < rows; ++r)
      total =
          add(total, from + JoinedPlan::at(plan.reduced, plan.x_reduced, outer, r), static_cast<std::size_t>(length));
    y.as<float>()[JoinedPlan::at(plan.kept, plan.y_kept, plan.kept.size(), index)] = finish(total);
  });
}

/// Rows of y come from rows: reduce(to, columns, each), where each(add) calls add(from, rows, elements from row to row).
constexpr std::int64_t kColumns = 256;  ///< the most at a time
template <class Reduce>
void reduce_columns(const JoinedPlan &plan, const Tensor &x, const Tensor &y, Reduce &&reduce) {
  const std::size_t outer = plan.kept.size() - 1;
  const std::int64_t columns = plan.kept[outer], blocks = (columns + kColumns - 1) / kColumns;
  // The last of the reduced axes is that of the kernel.
  const std::size_t some = plan.reduced.empty() ? 0 : plan.reduced.size() - 1;
  const std::int64_t parts = element_count(plan.reduced, 0, some);
  const auto rows = static_cast<std::size_t>(plan.reduced.empty() ? 1 : plan.reduced[some]);
  const std::ptrdiff_t row = plan.reduced.empty() ? 0 : plan.x_reduced[some];
  const auto tasks = static_cast<std::size_t>(element_count(plan.kept, 0, outer) * blocks);
  parallel_for(tasks, [&](std::size_t task) {
    const std::int64_t index = static_cast<std::int64_t>(task) / blocks,
                       first = static_cast<std::int64_t>(task) % blocks * kColumns,
                       count = std::min(kColumns, columns - first);
    const float *from = x.as<const float>() + JoinedPlan::at(plan.kept, plan.x_kept, outer, index) + first;
    float *to = y.as<float>() + JoinedPlan::at(plan.kept, plan.y_kept, outer, index) + first;
    reduce(to, static_cast<std::size_t>(count), [&](auto &&add) {
      for (std::int64_t p = 0; p < parts; ++p)
        add(from + JoinedPlan::at(plan.reduced, plan.x_reduced, some, p), rows, row);
    });
  });
}

constexpr double kZeros[kColumns] = {};

double addend(Addends of, double v) {
  return of == Addends::numbers ? v : of == Addends::magnitudes ? std::fabs(v) : v * v;
}

void magnitudes(const float *x, float *y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = std::fabs(x[i]);
}

double row_sum(Addends of, const float *row, std::size_t length) {
  if (of == Addends::numbers) return kernels::rows_kernel().sum(row, length);
  double total = 0;
  if (of == Addends::magnitudes) {
    float some[kColumns];
    for (std::size_t i = 0; i < length; i += kColumns) {
      const std::size_t count = std::min<std::size_t>(kColumns, length - i);
      magnitudes(row + i, some, count);
      total += kernels::rows_kernel().sum(some, count);
    }
    return total;
  }
  // A matrix whose columns are added up, and the rest of the row as one more row of it.
  constexpr std::size_t kLanes = 32;
  double lanes[kLanes] = {};
  const std::size_t rest = length % kLanes;
  const auto squares = kernels::columns_kernel().squares;
  squares({row, length / kLanes, kLanes, kLanes, lanes, kZeros});
  squares({row + length - rest, 1, 0, rest, lanes, kZeros});
  for (const double lane : lanes) total += lane;
  return total;
}

void add_columns(Addends of, const kernels::ColumnSumsArgs &args) {
  const kernels::ColumnsKernel &kernel = kernels::columns_kernel();
  if (of != Addends::magnitudes) return of == Addends::numbers ? kernel.sum(args) : kernel.squares(args);
  float some[kColumns];
  const float *x = args.x;
  for (std::size_t r = 0; r < args.rows; ++r, x += args.row) {
    magnitudes(x, some, args.columns);
    kernel.sum({some, 1, 0, args.columns, args.sums, nullptr});
  }
}

float of_nothing(Arithmetic f) { return f == Arithmetic::max ? Larger::kOfNothing<float> : Smaller::kOfNothing<float>; }

float extremum_of_two(Arithmetic f, float a, float b) {
  return f == Arithmetic::max ? Larger()(a, b) : Smaller()(a, b);
}

}  // namespace

void sum_floats(Addends of, const Tensor &x, const AxisSet &axes, double (*finish)(double sum, double count),
                const Tensor &y) {
  if (y.count() == 0) return;
  const auto count = static_cast<double>(x.count() / y.count());
  const auto rounded = [=](double sum) { return static_cast<float>(finish(sum, count)); };
  if (x.count() == 0) return void(std::fill_n(y.as<float>(), y.count(), rounded(0)));
  const JoinedPlan plan(x, axes, y);
  if (!plan.has_rows())
    return reduce<float, float>(
        x, axes, y, 0.0, [of](double sum, float v) { return sum + addend(of, static_cast<double>(v)); }, rounded);
  if (plan.last_is_reduced)
    return reduce_rows(
        plan, x, y, 0.0,
        [of](double total, const float *row, std::size_t length) { return total + row_sum(of, row, length); }, rounded);
  reduce_columns(plan, x, y, [&](float *to, std::size_t columns, auto &&each) {
    double sums[kColumns] = {};
    each([&](const float *from, std::size_t rows, std::ptrdiff_t row) {
      add_columns(of, {from, rows, row, columns, sums, kZeros});
    });
    for (std::size_t i = 0; i < columns; ++i) to[i] = rounded(sums[i]);
  });
}

float extremum_of(Arithmetic f, const float *x, std::size_t count) {
  constexpr std::size_t kLanes = 64;
  float lanes[kLanes], found = of_nothing(f);
  std::fill_n(lanes, kLanes, found);
  const auto run = kernels::pointwise_kernel().run;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) run({f, 1, kLanes, {lanes, 0, false}, {x + i, 0, false}, lanes});
  if (i > 0)
    for (const float v : lanes) found = extremum_of_two(f, found, v);
  for (; i < count; ++i) found = extremum_of_two(f, found, x[i]);
  return found;
}

void extremum_floats(Arithmetic f, const Tensor &x, const AxisSet &axes, const Tensor &y) {
  const auto same = [](float v) { return v; };
  const auto loops = [&] {
    reduce<float, float>(
        x, axes, y, of_nothing(f), [f](float a, float b) { return extremum_of_two(f, a, b); }, same);
  };
  if (x.count() == 0 || y.count() == 0) return loops();
  const JoinedPlan plan(x, axes, y);
  if (!plan.has_rows()) return loops();
  if (plan.last_is_reduced)
    return reduce_rows(
        plan, x, y, of_nothing(f),
        [f](float found, const float *row, std::size_t length) {
          return extremum_of_two(f, found, extremum_of(f, row, length));
        },
        same);
  reduce_columns(plan, x, y, [f, run = kernels::pointwise_kernel().run](float *to, std::size_t count, auto &&each) {
    std::fill_n(to, count, of_nothing(f));
    each([&](const float *from, std::size_t rows, std::ptrdiff_t row) {
      for (std::size_t r = 0; r < rows; ++r, from += row) run({f, 1, count, {to, 0, false}, {from, 0, false}, to});
    });
  });
}

}  // namespace qtn::ops
