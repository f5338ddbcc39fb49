// SPDX-License-Identifier: Apache-2.0
#include "ops/common/mean.hpp"

#include "kernels/columns/columns.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

std::int64_t reduced_count(const Shape &shape, const AxisSet &axes) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (axes[i]) count *= shape[i];
  return count;
}

/// The axes of x, joined where they allow it, apart as those of y and those that are summed.
struct SumPlan {
  SumPlan(const Tensor &x, const AxisSet &axes, const Tensor &y) {
    const std::array<Shape, 2> strides{x.strides(), repeated(y, axes, x.shape()).strides()};
    const Walk walk(x.shape(), strides);
    for (std::size_t axis = 0; axis < walk.dims.size(); ++axis) {
      // An axis of length 1 has no stride of its own.
      const bool sums = walk.strides[1][axis] == 0;
      (sums ? summed : kept).push_back(walk.dims[axis]);
      (sums ? x_summed : x_kept).push_back(walk.strides[0][axis]);
      if (!sums) y_kept.push_back(walk.strides[1][axis]);
      last_is_summed = sums;
    }
  }
  Shape kept, x_kept, y_kept, summed, x_summed;
  bool last_is_summed = false;

  static std::int64_t at(const Shape &dims, const Shape &strides, std::size_t count, std::int64_t index) {
    std::int64_t place = 0;
    for (std::size_t i = count; i-- > 0; index /= dims[i]) place += index % dims[i] * strides[i];
    return place;
  }
};

/// Each element of y is a sum of whole rows.
void sum_rows(const SumPlan &plan, const Tensor &x, double divisor, const Tensor &y) {
  const std::size_t outer = plan.summed.size() - 1;
  const std::int64_t length = plan.summed[outer], rows = element_count(plan.summed, 0, outer);
  parallel_for(static_cast<std::size_t>(y.count()), [&, sum = kernels::rows_kernel().sum](std::size_t task) {
    const auto index = static_cast<std::int64_t>(task);
    const float *from = x.as<const float>() + SumPlan::at(plan.kept, plan.x_kept, plan.kept.size(), index);
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      total += sum(from + SumPlan::at(plan.summed, plan.x_summed, outer, r), static_cast<std::size_t>(length));
    y.as<float>()[SumPlan::at(plan.kept, plan.y_kept, plan.kept.size(), index)] = static_cast<float>(total / divisor);
  });
}

/// Rows of y are sums of rows.
void sum_columns(const SumPlan &plan, const Tensor &x, double divisor, const Tensor &y) {
  constexpr std::int64_t kBlock = 256;
  const std::size_t outer = plan.kept.size() - 1;
  const std::int64_t columns = plan.kept[outer], blocks = (columns + kBlock - 1) / kBlock;
  // The last of the summed axes is that of the kernel.
  const std::size_t some = plan.summed.empty() ? 0 : plan.summed.size() - 1;
  const std::int64_t parts = element_count(plan.summed, 0, some);
  const auto rows = static_cast<std::size_t>(plan.summed.empty() ? 1 : plan.summed[some]);
  const std::ptrdiff_t row = plan.summed.empty() ? 0 : plan.x_summed[some];
  const auto tasks = static_cast<std::size_t>(element_count(plan.kept, 0, outer) * blocks);
  parallel_for(tasks, [&, add = kernels::columns_kernel().sum](std::size_t task) {
    const std::int64_t index = static_cast<std::int64_t>(task) / blocks,
                       first = static_cast<std::int64_t>(task) % blocks * kBlock,
                       count = std::min(kBlock, columns - first);
    const float *from = x.as<const float>() + SumPlan::at(plan.kept, plan.x_kept, outer, index) + first;
    double sums[kBlock] = {};
    for (std::int64_t p = 0; p < parts; ++p)
      add({from + SumPlan::at(plan.summed, plan.x_summed, some, p), rows, row, static_cast<std::size_t>(count), sums,
           nullptr});
    float *to = y.as<float>() + SumPlan::at(plan.kept, plan.y_kept, outer, index) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(sums[i] / divisor);
  });
}

}  // namespace

void sum_floats(const Tensor &x, const AxisSet &axes, double divisor, const Tensor &y) {
  if (y.count() == 0) return;
  if (x.count() == 0) return void(std::fill_n(y.as<float>(), y.count(), static_cast<float>(0 / divisor)));
  const SumPlan plan(x, axes, y);
  const bool rows_follow =
      !plan.last_is_summed ? plan.x_kept.back() == 1 && plan.y_kept.back() == 1 : plan.x_summed.back() == 1;
  if (rows_follow) return plan.last_is_summed ? sum_rows(plan, x, divisor, y) : sum_columns(plan, x, divisor, y);
  reduce<float, float>(
      x, axes, y, 0.0, [](double sum, float v) { return sum + static_cast<double>(v); },
      [divisor](double sum) { return static_cast<float>(sum / divisor); });
}

void mean_floats(const Tensor &x, const AxisSet &axes, const Tensor &y) {
  sum_floats(x, axes, static_cast<double>(reduced_count(x.shape(), axes)), y);
}

bool mean_quantized(const Tensor &x, const AxisSet &axes, const Tensor &y, const Clamp *clamp) {
  const std::int64_t count = reduced_count(x.shape(), axes);
  return count > 0 && sum_quantized(x, axes, count, y, clamp);
}

void mean_gradient(const Tensor &dy, const AxisSet &axes, const Tensor &dx) {
  const Tensor shares = repeated(dy, axes, dx.shape());
  const auto count = static_cast<float>(reduced_count(dx.shape(), axes));
  map_broadcast<float, float>(shares, shares, dx.shape(), dx.as<float>(),
                              [count](float slope, float) { return slope / count; });
}

}  // namespace qtn::ops
