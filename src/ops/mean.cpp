// SPDX-License-Identifier: Apache-2.0
#include "ops/mean.hpp"

#include "base/parallel.hpp"
#include "ops/requantization.hpp"

namespace qtn::ops {
namespace {

/// y[i] = finish(sum of what axes reduce, in the order of x).
template <class Sum, class X, class Finish>
void reduce(const Shape &shape, const X *x, const AxisSet &axes, float *y, Finish &&finish) {
  const Shape strides = contiguous_strides(shape);
  Shape kept, kept_strides, reduced, reduced_strides;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (axes[i] ? reduced : kept).push_back(shape[i]);
    (axes[i] ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  const auto offset_of = [](std::int64_t index, const Shape &dims, const Shape &steps) {
    std::int64_t offset = 0;
    for (std::size_t i = dims.size(); i-- > 0;) {
      offset += index % dims[i] * steps[i];
      index /= dims[i];
    }
    return offset;
  };
  const std::int64_t last = reduced.empty() ? 1 : reduced.back(), step = reduced.empty() ? 0 : reduced_strides.back();
  const std::int64_t rows = reduced.empty() ? 1 : element_count(reduced, 0, reduced.size() - 1);
  parallel_for(static_cast<std::size_t>(element_count(kept)), [&](std::size_t i) {
    const X *from = x + offset_of(static_cast<std::int64_t>(i), kept, kept_strides);
    Sum sum = 0;
    for (std::int64_t row = 0; last > 0 && row < rows; ++row) {
      const X *p = from + offset_of(row * last, reduced, reduced_strides);
      for (std::int64_t j = 0; j < last; ++j) sum += p[j * step];
    }
    y[i] = finish(sum);
  });
}

std::int64_t reduced_count(const Shape &shape, const AxisSet &axes) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (axes[i]) count *= shape[i];
  return count;
}

}  // namespace

void mean_floats(const Tensor &x, const AxisSet &axes, float *y) {
  const auto count = static_cast<double>(reduced_count(x.shape(), axes));
  reduce<double>(x.shape(), x.as<const float>(), axes, y,
                 [count](double sum) { return static_cast<float>(sum / count); });
}

bool mean_quantized(const Tensor &x, const AxisSet &axes, const Tensor &y, const Clamp *clamp) {
  const std::int64_t count = reduced_count(x.shape(), axes);
  if (!is_quantized_8bit(&x) || !is_quantized_8bit(&y) || count == 0) return false;
  const float m = mean_multiplier(x.quantizer()->scale(), y.quantizer()->scale(), count);
  const Tensor q = centered(x);
  std::vector<float> scaled(static_cast<std::size_t>(y.count()));
  reduce<std::int64_t>(x.shape(), q.as<const std::int32_t>(), axes, scaled.data(),
                       [m](std::int64_t sum) { return static_cast<float>(sum) * m; });
  store_scaled(y, scaled, clamp);
  return true;
}

}  // namespace qtn::ops
