// SPDX-License-Identifier: Apache-2.0
#include "ops/common/linear_grid.hpp"

#include <algorithm>
#include <cmath>

#include "core/scales.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/positive_scales.hpp"

namespace qtn::ops {
namespace {

struct Form {
  qscheme scheme;
  std::int32_t axis;
  std::int64_t block;
};

Form form_of(const char *op, const Attrs &attrs, const Shape &shape, const Tensor &scale, const Tensor *zero) {
  const bool one_zero = zero && zero->count() == 1 && scale.count() == 1;
  if (zero && !one_zero && !(zero->shape() == scale.shape()))
    fail(QTN_ESHAPE, op, ": zero point is ", to_string(zero->shape()), ", scale ", to_string(scale.shape()));
  const std::int64_t block = attrs.get_int("block_size", 0), given = attrs.get_int("axis", 1);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (block < 0) fail(QTN_EINVAL, op, ": block_size is ", block);
  if (block == 0 && scale.count() == 1) {
    // One scale in a list may stand for one channel.
    const bool inside = scale.rank() == 1 && attrs.has("axis") && given >= -rank && given < rank;
    const bool channel = inside && shape[static_cast<std::size_t>(given < 0 ? given + rank : given)] == 1;
    if (!channel) return {QTN_PER_TENSOR_AFFINE, 0, 0};
  }
  // Intel's Neural Compressor gives a bias, a list, the axis of the columns that it is added to.
  const bool of_columns = rank == 1 && given == 1 && block == 0;
  const std::size_t axis = of_columns ? 0 : normalize_axis(given, shape.size(), op);
  const auto at = static_cast<std::int32_t>(axis);
  if (block == 0) {
    if (scale.rank() != 1)
      fail(QTN_ESHAPE, op, ": scale is ", to_string(scale.shape()),
           ", which without block_size must be one number or a list");
    if (scale.count() != shape[axis])
      fail(QTN_ESHAPE, op, ": ", scale.count(), " scales for axis ", axis, " of x ", to_string(shape));
    return {QTN_PER_CHANNEL_AFFINE, at, 0};
  }
  Shape wanted = shape;
  wanted[axis] = shape[axis] / block + (shape[axis] % block != 0);
  if (!(scale.shape() == wanted))
    fail(QTN_ESHAPE, op, ": scale is ", to_string(scale.shape()), ", blocks of ", block, " along axis ", axis, " of x ",
         to_string(shape), " want ", to_string(wanted));
  return {QTN_PER_BLOCK_AFFINE, at, block};
}

/// The scheme without an offset, where there is none.
qscheme symmetric(qscheme scheme) { return static_cast<qscheme>(scheme + 1); }

std::vector<std::int64_t> zero_points(const char *op, const Tensor &zero) {
  if (!is_tiny_float(zero.dtype())) return int_values(zero, "zero point");
  const std::vector<float> values = float_values(to_plain(zero), "zero point");
  for (const float v : values)
    if (v != 0) fail(QTN_EINVAL, op, ": the zero point of ", dtype_name(zero.dtype()), " is ", v, ", it must be 0");
  return std::vector<std::int64_t>(values.size(), 0);
}

struct Grid {
  Form form;
  std::vector<float> scales;
  std::vector<std::int64_t> zeros;
};

Grid grid_of(const char *op, const Attrs &attrs, const Shape &shape, const Tensor &scale, const Tensor *zero) {
  Grid grid{form_of(op, attrs, shape, scale, zero), float_values(to_plain(scale), "scale"), {}};
  grid.zeros = zero ? zero_points(op, *zero) : std::vector<std::int64_t>(grid.scales.size(), 0);
  return grid;
}

}  // namespace

void check_linear_grid(const char *op, const Call &call) {
  const Tensor &scale = *call.in(1), *zero = call.in(2);
  require_dtype(op, "scale", scale, {QTN_FLOAT32, QTN_FLOAT16, QTN_BFLOAT16, QTN_FLOAT8E8M0});
  if (zero && !is_quantizable(zero->dtype()))
    fail(zero->dtype() == QTN_FLOAT32 ? QTN_EUNSUPPORTED : QTN_EDTYPE, op, ": zero point is ",
         dtype_name(zero->dtype()), ", it must be of the type of the integers");
  form_of(op, call.attrs, call.in(0)->shape(), scale, zero);
}

QuantizerPtr linear_quantizer(const char *op, const Attrs &attrs, const Shape &shape, const Tensor &scale,
                              const Tensor *zero, qdtype dtype, Numerics numerics) {
  auto [form, scales, zeros] = grid_of(op, attrs, shape, scale, zero);
  const bool centered = std::all_of(zeros.begin(), zeros.end(), [](std::int64_t z) { return z == 0; }) &&
                        (is_tiny_float(dtype) || integer_range(dtype).lo < 0);
  try {
    return std::make_shared<Quantizer>(dtype, centered ? symmetric(form.scheme) : form.scheme, form.axis,
                                       std::vector<double>(scales.begin(), scales.end()), std::move(zeros), numerics,
                                       form.block);
  } catch (const Error &e) {
    fail(e.status(), op, ": ", e.what());
  }
}

bool are_positive(const Tensor &scale) {
  return std::ranges::none_of(float_values(to_plain(scale), "scale"), [](float s) { return s <= 0; });
}

Tensor on_linear_grid(const char *op, const Attrs &attrs, const Tensor &integers, const Tensor &scale,
                      const Tensor *zero, Numerics numerics) {
  if (are_positive(scale))
    return integers.with_quantizer(
        linear_quantizer(op, attrs, integers.shape(), scale, zero, integers.dtype(), numerics));
  const Grid grid = grid_of(op, attrs, integers.shape(), scale, zero);
  try {
    return on_positive_scales(integers, grid.scales, grid.zeros, static_cast<std::size_t>(grid.form.axis),
                              grid.form.block, numerics);
  } catch (const Error &e) {
    fail(e.status(), op, ": ", e.what());
  }
}

QuantizerPtr linear_quantizer(const char *op, const Call &call, qdtype dtype) {
  return linear_quantizer(op, call.attrs, call.in(0)->shape(), *call.in(1), call.in(2), dtype, Numerics::onnx);
}

}  // namespace qtn::ops
