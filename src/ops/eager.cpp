// SPDX-License-Identifier: Apache-2.0
#include "ops/eager.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace qtn::ops {
namespace {

struct Range {
  float min = 0, max = 0;
};

/// Smallest and largest value, extended to 0.
Range range_of(const Tensor &x) {
  const Tensor flat = x.to_contiguous();
  Range range;
  bool finite = true;
  for (const float v : std::span(flat.as<const float>(), static_cast<std::size_t>(flat.count()))) {
    finite &= std::isfinite(v);
    range.min = std::min(range.min, v);
    range.max = std::max(range.max, v);
  }
  if (!finite) fail(QTN_EINVAL, "linear: x holds NaN or infinity, which has no scale");
  return range;
}

/// FBGEMM's ChooseQuantizationParams for uint8 with reduce_range. Small scales are raised, so that they invert well.
ScaleZero choose_fbgemm(Range range) {
  constexpr double kHighest = 127;
  constexpr float kSmallest = 6.1e-5f;
  auto scale = static_cast<float>((static_cast<double>(range.max) - static_cast<double>(range.min)) / kHighest);
  if (scale == 0.0f || std::isinf(1.0f / scale)) scale = 0.1f;
  if (scale < kSmallest) {
    const float gain = kSmallest / scale;
    range.min *= gain;
    range.max *= gain;
    scale = kSmallest;
  }
  const double below = static_cast<double>(range.min) / static_cast<double>(scale);
  const double above = static_cast<double>(range.max) / static_cast<double>(scale);
  // Of the two ends, the one whose quotient is less in error gives the zero point.
  const double zero = std::abs(below) < kHighest + std::abs(above) ? -below : kHighest - above;
  return {static_cast<double>(scale), static_cast<std::int64_t>(std::nearbyint(std::clamp(zero, 0.0, kHighest)))};
}

/// DynamicQuantizeLinear. A tensor of zeros has no range; scale 1 keeps it.
ScaleZero choose_onnx(const Range &range) {
  const float scale = range.max / 255.0f - range.min / 255.0f;
  if (scale < 1.1754944e-38f) return {1.0, 0};
  const float exact = range.max - range.min;
  const float used = std::isfinite(exact) ? exact / 255.0f : scale;
  return {static_cast<double>(used),
          static_cast<std::int64_t>(std::nearbyint(std::clamp(0.0f - range.min / used, 0.0f, 255.0f)))};
}

bool is_8bit(const Tensor &t) { return t.dtype() == QTN_UINT8 || t.dtype() == QTN_INT8; }

void check_operand(const char *op, const char *name, const Tensor &t) {
  if (!t.quantized() && t.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, op, ": ", name, " is a plain ", dtype_name(t.dtype()), " tensor, neither float32 nor quantized");
}

void check_operands(const char *op, const Tensor &x, const Tensor &weight, const Tensor *bias,
                    const QuantizerPtr &quantizer) {
  check_operand(op, "x", x);
  check_operand(op, "weight", weight);
  if (x.quantized() && x.quantizer()->per_channel())
    fail(QTN_EDTYPE, op, ": x is quantized per channel, not per tensor");
  if (weight.quantized() && weight.quantizer()->per_channel() && weight.quantizer()->axis() != 0)
    fail(QTN_EDTYPE, op, ": weight is quantized along axis ", weight.quantizer()->axis(), ", not along axis 0");
  if (quantizer && quantizer->per_channel())
    fail(QTN_EDTYPE, op, ": the quantizer of the result is per channel, not per tensor");
  if (!bias) return;
  if (bias->dtype() != QTN_FLOAT32) fail(QTN_EDTYPE, op, ": bias is ", dtype_name(bias->dtype()), ", not float32");
  if (bias->rank() != 1 || weight.rank() == 0 || bias->dim(0) != weight.dim(0))
    fail(QTN_ESHAPE, op, ": bias is ", to_string(bias->shape()), ", weight ", to_string(weight.shape()));
}

/// In place: rows [rows, bias->count()] + bias.
void add_bias(const Tensor &rows, const Tensor *bias) {
  if (!bias) return;
  const std::vector<float> b = float_values(*bias, "linear: bias");
  auto *y = rows.as<float>();
  for (std::int64_t i = 0; i < rows.dim(0); ++i)
    for (const float v : b) *y++ += v;
}

/// rows [m, in] -> [m, out].
Tensor linear_rows(const Tensor &rows, const Tensor &weight, const Tensor *bias, const QuantizerPtr &quantizer) {
  const OpDef &gemm = *find_op("Gemm");
  Attrs attrs;
  attrs.set("transB", std::int64_t{1});
  // The integer bias of a quantized result is part of its one rounding; a float result has a better place for a float
  // bias.
  const bool float_bias = !quantizer && rows.quantized();
  const Tensor *inputs[] = {&rows, &weight, float_bias ? nullptr : bias};
  const Call call{attrs, std::span(inputs, inputs[2] ? 3 : 2)};
  if (!rows.quantized() && !weight.quantized() && !quantizer) return run_op(gemm, call)[0];
  const Tensor y = run_quantized_op(gemm, call, std::span(&quantizer, 1))[0];
  if (float_bias) add_bias(y, bias);
  return y;
}

}  // namespace

QuantizerPtr dynamic_quantizer(const Tensor &x, Numerics numerics) {
  const Range range = range_of(x);
  const ScaleZero chosen = numerics == Numerics::fbgemm ? choose_fbgemm(range) : choose_onnx(range);
  return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector{chosen.scale},
                                     std::vector{chosen.zero_point}, numerics);
}

std::vector<Tensor> run_eager(const std::string &name, std::span<const Tensor *const> inputs, std::size_t output_count,
                              const Attrs &attrs) {
  const OpDef *op = find_op(name);
  if (!op) fail(QTN_EUNSUPPORTED, "operator \"", name, "\" is not one that this version has");
  if (output_count == 0 || output_count > op->max_outputs)
    fail(QTN_EINVAL, name, ": ", output_count, " outputs wanted, it has ", op->max_outputs);
  const Call call{attrs, inputs, output_count};
  check_call(*op, call);
  if (std::none_of(inputs.begin(), inputs.end(), [](const Tensor *t) { return t && t->quantized(); }))
    return run_op(*op, call);
  std::vector<QuantizerPtr> quantizers(output_count);
  const Tensor *first = call.in(op->moved.first);
  if (first && first->quantized() && !first->quantizer()->per_channel() && moves(*op, attrs))
    std::fill(quantizers.begin(), quantizers.end(), first->quantizer());
  return run_quantized_op(*op, call, quantizers);
}

Tensor linear(const Tensor &x, const Tensor &weight, const Tensor *bias, const QuantizerPtr &quantizer) {
  if (weight.rank() != 2) fail(QTN_ESHAPE, "linear: weight is ", to_string(weight.shape()), ", not of rank 2");
  if (x.rank() == 0) fail(QTN_ESHAPE, "linear: x is a scalar, without features");
  if (x.shape().back() != weight.dim(1))
    fail(QTN_ESHAPE, "linear: weight has ", weight.dim(1), " input features, x has ", x.shape().back());
  check_operands("linear", x, weight, bias, quantizer);

  const std::int64_t in = weight.dim(1);
  const std::int64_t rows = element_count(x.shape(), 0, x.rank() - 1);
  Tensor x2 = x.to_contiguous().reshaped(Shape{rows, in});
  const bool dynamic = !x.quantized() && weight.quantized() && is_8bit(weight);
  if (dynamic) x2 = quantize(x2, dynamic_quantizer(x2, weight.quantizer()->numerics()));

  Tensor y = linear_rows(x2, weight, bias, dynamic ? nullptr : quantizer);
  if (dynamic && quantizer) y = quantize(y, quantizer);
  Shape shape = x.shape();
  shape[shape.size() - 1] = weight.dim(0);
  return y.reshaped(shape);
}

Tensor conv2d(const Tensor &x, const Tensor &weight, const Tensor *bias, const QuantizerPtr &quantizer,
              const Attrs &attrs) {
  if (x.rank() != 4) fail(QTN_ESHAPE, "conv2d: x is ", to_string(x.shape()), ", not of rank 4");
  if (weight.rank() != 4) fail(QTN_ESHAPE, "conv2d: weight is ", to_string(weight.shape()), ", not of rank 4");
  check_operands("conv2d", x, weight, bias, quantizer);
  const OpDef &conv = *find_op("Conv");
  const Tensor *inputs[] = {&x, &weight, bias};
  const Call call{attrs, std::span(inputs, bias ? 3 : 2)};
  check_call(conv, call);
  if (!x.quantized() && !weight.quantized() && !quantizer) return run_op(conv, call)[0];
  return run_quantized_op(conv, call, std::span(&quantizer, 1))[0];
}

}  // namespace qtn::ops
