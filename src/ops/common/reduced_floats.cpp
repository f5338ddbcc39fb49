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

constexpr std::int64_t kTogether = kMostColumns;  ///< the most elements of y at a time

/// Elements of y come from rows: add(from, rows, elements from row to row, length, founds) for each part of them, and then
/// finish(founds, count, to, elements from one to the next of y).
template <class T, class Add, class Finish>
void reduce_rows(const JoinedPlan &plan, const Tensor &x, const Tensor &y, T start, Add &&add, Finish &&finish) {
  const std::size_t some = plan.reduced.size() - 1, outer = plan.kept.empty() ? 0 : plan.kept.size() - 1;
  const std::int64_t length = plan.reduced[some], parts = element_count(plan.reduced, 0, some);
  const std::int64_t rows = plan.kept.empty() ? 1 : plan.kept[outer];
  const std::int64_t row = plan.kept.empty() ? 0 : plan.x_kept[outer],
                     y_row = plan.kept.empty() ? 0 : plan.y_kept[outer];
  const std::int64_t together = std::clamp<std::int64_t>((1 << 15) / length / parts, 1, kTogether),
                     blocks = (rows + together - 1) / together;
  const auto tasks = static_cast<std::size_t>(element_count(plan.kept, 0, outer) * blocks);
  parallel_for(tasks, [&](std::size_t task) {
    const std::int64_t index = static_cast<std::int64_t>(task) / blocks,
                       first = static_cast<std::int64_t>(task) % blocks * together,
                       count = std::min(together, rows - first);
    const float *from = x.as<const float>() + JoinedPlan::at(plan.kept, plan.x_kept, outer, index) + first * row;
    T founds[kTogether];
    std::fill_n(founds, count, start);
    for (std::int64_t p = 0; p < parts; ++p)
      add(from + JoinedPlan::at(plan.reduced, plan.x_reduced, some, p), static_cast<std::size_t>(count), row,
          static_cast<std::size_t>(length), founds);
    finish(founds, count, y.as<float>() + JoinedPlan::at(plan.kept, plan.y_kept, outer, index) + first * y_row, y_row);
  });
}

/// Columns of few elements as wide ones, of which each has many rows side by side, where rows have no gaps: `add` as in
/// reduce_columns(), join(founds, lanes, count) what is found of both.
template <class T, class Add, class Join>
void add_widely(const float *from, std::size_t rows, std::ptrdiff_t row, std::size_t columns, T *founds, T start,
                Add &&add, Join &&join) {
  constexpr std::size_t kFew = 4;  // rows of lanes for which these are worth it
  const std::size_t side_by_side = std::min(kTogether / columns, rows / kFew), wide = side_by_side * columns;
  if (row != static_cast<std::ptrdiff_t>(columns) || side_by_side < 2) return add(from, rows, row, columns, founds);
  T lanes[kTogether];
  std::fill_n(lanes, wide, start);
  const std::size_t times = rows / side_by_side, rest = rows % side_by_side;
  add(from, times, static_cast<std::ptrdiff_t>(wide), wide, lanes);
  add(from + times * wide, 1, 0, rest * columns, lanes);
  for (std::size_t i = 0; i < wide; i += columns) join(founds, lanes + i, columns);
}

/// Rows of y come from rows: add(from, rows, elements from row to row, columns, founds) for each part of these.
template <class T, class Add, class Finish>
void reduce_columns(const JoinedPlan &plan, const Tensor &x, const Tensor &y, T start, Add &&add, Finish &&finish) {
  const std::size_t outer = plan.kept.size() - 1;
  const std::int64_t columns = plan.kept[outer], blocks = (columns + kTogether - 1) / kTogether;
  // The last of the reduced axes is that of the kernel.
  const std::size_t some = plan.reduced.empty() ? 0 : plan.reduced.size() - 1;
  const std::int64_t parts = element_count(plan.reduced, 0, some);
  const auto rows = static_cast<std::size_t>(plan.reduced.empty() ? 1 : plan.reduced[some]);
  const std::ptrdiff_t row = plan.reduced.empty() ? 0 : plan.x_reduced[some];
  const auto tasks = static_cast<std::size_t>(element_count(plan.kept, 0, outer) * blocks);
  parallel_for(tasks, [&](std::size_t task) {
    const std::int64_t index = static_cast<std::int64_t>(task) / blocks,
                       first = static_cast<std::int64_t>(task) % blocks * kTogether,
                       count = std::min(kTogether, columns - first);
    const float *from = x.as<const float>() + JoinedPlan::at(plan.kept, plan.x_kept, outer, index) + first;
    T founds[kTogether];
    std::fill_n(founds, count, start);
    for (std::int64_t p = 0; p < parts; ++p)
      add(from + JoinedPlan::at(plan.reduced, plan.x_reduced, some, p), rows, row, static_cast<std::size_t>(count),
          founds);
    finish(founds, count, y.as<float>() + JoinedPlan::at(plan.kept, plan.y_kept, outer, index) + first, 1);
  });
}

double addend(Addends of, double v) {
  return of == Addends::numbers ? v : of == Addends::magnitudes ? std::fabs(v) : v * v;
}

void magnitudes(const float *x, float *y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = std::fabs(x[i]);
}

void add_columns(Addends of, const kernels::ColumnSumsArgs &args) {
  const kernels::ColumnsKernel &kernel = kernels::columns_kernel();
  if (of != Addends::magnitudes) return of == Addends::numbers ? kernel.sum(args) : kernel.squares(args);
  float some[kTogether];
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

void column_sums(Addends of, const float *x, std::size_t rows, std::ptrdiff_t row, std::size_t columns, double *sums) {
  static constexpr double kZeros[kTogether] = {};
  add_widely(
      x, rows, row, columns, sums, 0.0,
      [of](const float *some, std::size_t count, std::ptrdiff_t step, std::size_t width, double *lanes) {
        add_columns(of, {some, count, step, width, lanes, kZeros});
      },
      [](double *all, const double *lanes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) all[i] += lanes[i];
      });
}

void column_extremes(Arithmetic f, const float *x, std::size_t rows, std::ptrdiff_t row, std::size_t columns,
                     float *founds) {
  const auto join = [f, run = kernels::pointwise_kernel().run](float *all, const float *lanes, std::size_t count) {
    run({f, 1, count, {all, 0, false}, {lanes, 0, false}, all});
  };
  add_widely(
      x, rows, row, columns, founds, of_nothing(f),
      [join](const float *some, std::size_t count, std::ptrdiff_t step, std::size_t width, float *lanes) {
        for (std::size_t r = 0; r < count; ++r, some += step) join(lanes, some, width);
      },
      join);
}

void sum_floats(Addends of, const Tensor &x, const AxisSet &axes, double divisor, double (*f)(double sum),
                const Tensor &y) {
  const auto rounded = [=](double sum) {
    const double v = sum / divisor;
    return static_cast<float>(f ? f(v) : v);
  };
  if (y.count() == 0) return;
  if (x.count() == 0) return void(std::fill_n(y.as<float>(), y.count(), rounded(0)));
  const JoinedPlan plan(x, axes, y);
  if (!plan.has_rows())
    return reduce<float, float>(
        x, axes, y, 0.0, [of](double sum, float v) { return sum + addend(of, static_cast<double>(v)); }, rounded);
  const auto finish = [=](const double *sums, std::int64_t count, float *to, std::int64_t step) {
    if (f || step != 1)
      for (std::int64_t i = 0; i < count; ++i) to[i * step] = rounded(sums[i]);
    else if (divisor == 1)
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(sums[i]);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(sums[i] / divisor);
  };
  if (plan.last_is_reduced)
    return reduce_rows(
        plan, x, y, 0.0,
        [of, add = kernels::rows_kernel().sums](const float *from, std::size_t rows, std::ptrdiff_t row,
                                                std::size_t length, double *sums) {
          add({of, from, rows, row, length, sums});
        },
        finish);
  reduce_columns(
      plan, x, y, 0.0,
      [of](const float *from, std::size_t rows, std::ptrdiff_t row, std::size_t columns, double *sums) {
        column_sums(of, from, rows, row, columns, sums);
      },
      finish);
}

double row_sum(const float *x, std::size_t count) {
  double sum = 0;
  kernels::rows_kernel().sums({Addends::numbers, x, 1, 0, count, &sum});
  return sum;
}

float extremum_of(Arithmetic f, const float *x, std::size_t count) {
  float found = of_nothing(f);
  if (count > 0) kernels::rows_kernel().extremes({f == Arithmetic::max, x, 1, 0, count, &found});
  return found;
}

void extremum_floats(Arithmetic f, const Tensor &x, const AxisSet &axes, const Tensor &y) {
  const auto loops = [&] {
    reduce<float, float>(
        x, axes, y, of_nothing(f), [f](float a, float b) { return extremum_of_two(f, a, b); },
        [](float v) { return v + 0.0f; });
  };
  if (x.count() == 0 || y.count() == 0) return loops();
  const JoinedPlan plan(x, axes, y);
  if (!plan.has_rows()) return loops();
  const auto finish = [](const float *founds, std::int64_t count, float *to, std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = founds[i] + 0.0f;
  };
  if (plan.last_is_reduced)
    return reduce_rows(
        plan, x, y, of_nothing(f),
        [f, add = kernels::rows_kernel().extremes](const float *from, std::size_t rows, std::ptrdiff_t row,
                                                   std::size_t length, float *founds) {
          add({f == Arithmetic::max, from, rows, row, length, founds});
        },
        finish);
  reduce_columns(
      plan, x, y, of_nothing(f),
      [f](const float *from, std::size_t rows, std::ptrdiff_t row, std::size_t columns, float *founds) {
        column_extremes(f, from, rows, row, columns, founds);
      },
      finish);
}

}  // namespace qtn::ops
