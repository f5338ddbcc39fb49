// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"

#include <limits>

#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

void check_parameter(const Grid &grid, const char *what, const Tensor &t) {
  if (t.count() == 1) return;
  if (grid.channels > 1 && t.count() == grid.channels && t.shape().back() == grid.channels) return;
  fail(QTN_ESHAPE, grid.op, ": ", grid.name, "_", what, " is ", to_string(t.shape()), ", not one number",
       grid.channels > 1 ? cat(" or one for each of ", grid.channels, " channels") : "");
}

/// Largest |q - zero_point|.
std::int64_t reach(const Grid &grid) {
  const IntegerRange range = integer_range(grid.dtype);
  return grid.zero ? range.hi - range.lo : std::max(range.hi, -range.lo);
}

/// An input behind optional ones.
void require_input(const char *op, const char *name, const Tensor *t) {
  if (!t) fail(QTN_EINVAL, op, ": input ", name, " is absent");
}

Grid unary_x(const char *name, const Call &call) { return {name, "x", call.in(0)->dtype(), call.in(1), call.in(2)}; }
Grid unary_y(const char *name, const Call &call) { return {name, "y", call.in(0)->dtype(), call.in(3), call.in(4)}; }

Grid binary_a(const char *name, const Call &call) { return {name, "a", call.in(0)->dtype(), call.in(1), call.in(2)}; }
Grid binary_b(const char *name, const Call &call) { return {name, "b", call.in(3)->dtype(), call.in(4), call.in(5)}; }
Grid binary_y(const char *name, const Call &call) { return {name, "y", call.in(0)->dtype(), call.in(6), call.in(7)}; }

}  // namespace

void check_grid(const Grid &grid) {
  if (grid.scale) {
    require_dtype(grid.op, cat(grid.name, "_scale").c_str(), *grid.scale, {QTN_FLOAT32});
    check_parameter(grid, "scale", *grid.scale);
  }
  if (grid.zero) {
    require_dtype(grid.op, cat(grid.name, "_zero_point").c_str(), *grid.zero, {grid.dtype});
    check_parameter(grid, "zero_point", *grid.zero);
  }
}

QuantizerPtr quantizer_of(const Grid &grid) {
  std::vector<double> scales{1.0};
  std::vector<std::int64_t> zeros{0};
  if (grid.scale) {
    const std::vector<float> values = float_values(*grid.scale, "scale");
    scales.assign(values.begin(), values.end());
  }
  if (grid.zero) zeros = int_values(*grid.zero, "zero point");
  const std::size_t count = std::max(scales.size(), zeros.size());
  scales.resize(count, scales.front());
  zeros.resize(count, zeros.front());
  try {
    return std::make_shared<Quantizer>(grid.dtype, count > 1 ? QTN_PER_CHANNEL_AFFINE : QTN_PER_TENSOR_AFFINE,
                                       static_cast<std::int32_t>(grid.axis), std::move(scales), std::move(zeros),
                                       Numerics::onnx);
  } catch (const Error &e) {
    fail(e.status(), grid.op, ": ", grid.name, ": ", e.what());
  }
}

Grid columns_grid(Grid grid, const Tensor &b) {
  if (b.rank() < 2) return grid;
  grid.channels = b.shape().back();
  grid.axis = b.rank() - 1;
  return grid;
}

void require_8bit(const char *op, const char *name, const Tensor &t) {
  require_dtype(op, name, t, {QTN_UINT8, QTN_INT8});
}

Shape real_shape(const OpDef &op, const Attrs &attrs, const std::vector<const Tensor *> &operands) {
  std::vector<Tensor> reals;
  for (const Tensor *t : operands) reals.push_back(t ? Tensor::meta(QTN_FLOAT32, t->shape()) : Tensor());
  std::vector<const Tensor *> pointers;
  for (std::size_t i = 0; i < reals.size(); ++i) pointers.push_back(operands[i] ? &reals[i] : nullptr);
  return infer_op(op, {attrs, pointers})[0].shape;
}

void run_on_grids(const OpDef &op, const Attrs &attrs, const std::vector<const Tensor *> &operands,
                  const QuantizerPtr &y, const Tensor &output) {
  const std::vector<Tensor> results = run_quantized_op(op, {attrs, operands}, std::span(&y, 1));
  copy_elements(output, results[0].with_quantizer(nullptr));
}

void run_sums(const OpDef &op, const Attrs &attrs, const std::vector<const Tensor *> &operands, const Tensor &output) {
  if (!op.run_quantized({attrs, operands}, output, nullptr))
    fail(QTN_EUNSUPPORTED, op.name, ": these operands have no sums in integers");
}

void check_int32_sums(const Grid &x, const Grid &w, std::int64_t depth) {
  const std::int64_t largest = reach(x) * reach(w);
  if (depth > std::numeric_limits<std::int32_t>::max() / largest)
    fail(QTN_EUNSUPPORTED, x.op, ": sums of K = ", depth, " products of ", dtype_name(x.dtype), " and ",
         dtype_name(w.dtype), ", each up to ", largest, ", may overflow int32");
}

Tensor accumulator_units(const Tensor &bias, const Quantizer &x, const Quantizer &w) {
  std::vector<double> scales = w.scales();
  for (double &scale : scales) scale *= x.scales()[0];
  const qscheme scheme = w.per_channel() ? QTN_PER_CHANNEL_AFFINE : QTN_PER_TENSOR_AFFINE;
  const auto axis = static_cast<std::int32_t>(bias.rank() ? bias.rank() - 1 : 0);
  std::vector<std::int64_t> zeros(scales.size(), 0);
  return bias.with_quantizer(
      std::make_shared<Quantizer>(QTN_INT32, scheme, axis, std::move(scales), std::move(zeros), Numerics::onnx));
}

void check_column_bias(const char *op, const Tensor *bias, const Tensor &b) {
  if (!bias) return;
  require_float(op, "bias", bias);
  if (b.rank() < 2 || bias->count() != b.shape().back())
    fail(QTN_ESHAPE, op, ": bias is ", to_string(bias->shape()), ", not one number for each column of b ",
         to_string(b.shape()));
}

void add_column_bias(const Tensor &y, const Tensor *bias) {
  if (!bias) return;
  const Tensor columns = bias->to_contiguous().reshaped({bias->count()});
  map_broadcast<float, float>(y, columns, y.shape(), y.as<float>(), [](float v, float b) { return v + b; });
}

Attrs without_channels_last(const char *op, const Attrs &attrs) {
  if (attrs.get_int("channels_last", 0) != 0) fail(QTN_EUNSUPPORTED, op, ": channels_last is not supported");
  Attrs rest = attrs;
  rest.erase("channels_last");
  return rest;
}

Types infer_qlinear_unary(const char *name, const OpDef &op, const Attrs &attrs, const Call &call) {
  require_input(name, "y_scale", call.in(3));
  require_8bit(name, "x", *call.in(0));
  check_grid(unary_x(name, call));
  check_grid(unary_y(name, call));
  return {{call.in(0)->dtype(), real_shape(op, attrs, {call.in(0)})}};
}

void run_qlinear_unary(const char *name, const OpDef &op, const Attrs &attrs, const Call &call, const Tensor &output) {
  const Tensor x = call.in(0)->with_quantizer(quantizer_of(unary_x(name, call)));
  run_on_grids(op, attrs, {&x}, quantizer_of(unary_y(name, call)), output);
}

Types infer_qlinear_binary(const char *name, const OpDef &op, const Call &call) {
  require_input(name, "b", call.in(3));
  require_input(name, "b_scale", call.in(4));
  require_input(name, "y_scale", call.in(6));
  require_8bit(name, "a", *call.in(0));
  require_same_dtype(name, *call.in(0), *call.in(3));
  check_grid(binary_a(name, call));
  check_grid(binary_b(name, call));
  check_grid(binary_y(name, call));
  return {{call.in(0)->dtype(), real_shape(op, call.attrs, {call.in(0), call.in(3)})}};
}

void run_qlinear_binary(const char *name, const OpDef &op, const Call &call, const Tensor &output) {
  const Tensor a = call.in(0)->with_quantizer(quantizer_of(binary_a(name, call)));
  const Tensor b = call.in(3)->with_quantizer(quantizer_of(binary_b(name, call)));
  run_on_grids(op, call.attrs, {&a, &b}, quantizer_of(binary_y(name, call)), output);
}

}  // namespace qtn::ops
