// SPDX-License-Identifier: Apache-2.0
// Bytes as floats, which hold them, and their sums in double. Compiled as vectors.
#include "ops/common/reduced_bytes.hpp"

#include "ops/common/cast.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/reduced_floats.hpp"
#include "ops/common/requantization.hpp"
#include "ops/common/scratch_tensors.hpp"

namespace qtn::ops {
namespace {

/// q - zero_point
Tensor centered_floats(const Tensor &q) {
  const Tensor x = q.to_contiguous(), y(QTN_FLOAT32, x.shape());
  const std::int32_t zero = x.quantizer()->zero_point();
  const auto subtract = [zero](auto v) { return static_cast<float>(v - zero); };
  x.dtype() == QTN_INT8 ? map_elements<std::int8_t, float>(x, y, subtract)
                        : map_elements<std::uint8_t, float>(x, y, subtract);
  return y;
}

}  // namespace

void extremum_bytes(kernels::Arithmetic max_or_min, const Call &call, const AxisSet &axes, const Tensor &y) {
  const qdtype dtype = y.dtype();
  const Shape &from = call.in(0)->shape(), &to = y.shape();
  Scratch own, &scratch = call.scratch ? *call.scratch : own;
  const auto [x, reals, founds, bytes] =
      scratch_tensors<4>(scratch, {{{dtype, from}, {QTN_FLOAT32, from}, {QTN_FLOAT32, to}, {dtype, to}}});
  copy_elements(x, *call.in(0));
  cast_quickly(x, reals);
  extremum_floats(max_or_min, reals, axes, founds);
  // The extremum of nothing is infinite.
  if (dtype == QTN_BOOL) map_elements<float>(founds, founds, [](float v) { return std::clamp(v, 0.0f, 1.0f); });
  cast_quickly(founds, bytes);
  copy_elements(y, bytes);
}

bool sum_quantized(const Tensor &x, const AxisSet &axes, std::int64_t divisor, const Tensor &y, const Clamp *clamp) {
  if (!is_quantized_8bit(&x) || !is_quantized_8bit(&y)) return false;
  const float m = mean_multiplier(x.quantizer()->scale(), y.quantizer()->scale(), divisor);
  const Tensor scaled(QTN_FLOAT32, y.shape());
  sum_floats(Addends::numbers, centered_floats(x), axes, 1, nullptr, scaled);
  map_elements<float>(scaled, scaled, [m](float sum) { return sum * m; });
  store_scaled(y, std::span(scaled.as<const float>(), static_cast<std::size_t>(y.count())), clamp);
  return true;
}

}  // namespace qtn::ops
