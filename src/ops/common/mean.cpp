// SPDX-License-Identifier: Apache-2.0
#include "ops/common/mean.hpp"

#include "ops/common/elementwise.hpp"
#include "ops/common/reduced_bytes.hpp"
#include "ops/common/reduced_floats.hpp"

namespace qtn::ops {
namespace {

std::int64_t reduced_count(const Shape &shape, const AxisSet &axes) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (axes[i]) count *= shape[i];
  return count;
}

}  // namespace

void mean_floats(const Tensor &x, const AxisSet &axes, const Tensor &y) {
  sum_floats(Addends::numbers, x, axes, static_cast<double>(reduced_count(x.shape(), axes)), nullptr, y);
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
