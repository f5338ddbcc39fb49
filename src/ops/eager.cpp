// SPDX-License-Identifier: Apache-2.0
#include "ops/eager.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/inserted.hpp"
#include "ops/common/integer_linear.hpp"
#include "ops/custom.hpp"

namespace qtn::ops {
namespace {

bool is_8bit(const Tensor &t) { return t.dtype() == QTN_UINT8 || t.dtype() == QTN_INT8; }

void check_operand(const char *op, const char *name, const Tensor &t) {
  if (!t.quantized() && t.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, op, ": ", name, " is a plain ", dtype_name(t.dtype()), " tensor, neither float32 nor quantized");
}

void check_operands(const char *op, const Tensor &x, const Tensor &weight, const Tensor *bias,
                    const QuantizerPtr &quantizer) {
  check_operand(op, "x", x);
  check_operand(op, "weight", weight);
  if (x.quantized() && !x.quantizer()->per_tensor())
    fail(QTN_EDTYPE, op, ": x is quantized per ", x.quantizer()->per_channel() ? "channel" : "block",
         ", not per tensor");
  if (weight.quantized() && weight.quantizer()->per_channel() && weight.quantizer()->axis() != 0)
    fail(QTN_EDTYPE, op, ": weight is quantized along axis ", weight.quantizer()->axis(), ", not along axis 0");
  if (quantizer && !quantizer->per_tensor())
    fail(QTN_EDTYPE, op, ": the quantizer of the result is per ", quantizer->per_channel() ? "channel" : "block",
         ", not per tensor");
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

/// What stands where nothing is moved to: Pad's input or Resize's attribute, else zero.
float inserted(const OpDef &op, const Call &call) {
  if (const Tensor *fill = call.in(op.fill))
    return fill->count() == 1 && call.attrs.get_string("mode", "constant") == "constant"
               ? static_cast<float>(item(*fill))
               : 0;
  return inserts_attribute(call.attrs) ? static_cast<float>(call.attrs.get_float("extrapolation_value", 0)) : 0;
}

bool lies_on(const Quantizer &grid, float v) { return grid.dequantize(grid.quantize(v)) == v; }

/// The grid that results lie on without being rounded to it, or nullptr.
QuantizerPtr kept_grid(const OpDef &op, const Call &call) {
  const Tensor *first = call.in(op.moved.first);
  if (!moves(op, call.attrs) && !op.keeps_grid) return nullptr;
  if (!first || !first->quantized() || !first->quantizer()->per_tensor()) return nullptr;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor *t = call.inputs[i];
    if (!t || !op.moved.holds(i)) continue;
    if (!t->quantized() || !same_grid(*t->quantizer(), *first->quantizer())) return nullptr;
  }
  const QuantizerPtr &grid = first->quantizer();
  return lies_on(*grid, inserted(op, call)) ? grid : nullptr;
}

std::vector<Tensor> run(const std::string &name, const Call &call, const QuantizerPtr &quantizer) {
  OpPtr op = find_op(name);
  if (!op) op = find_registered(name);
  if (!op) fail(QTN_EUNSUPPORTED, "operator \"", name, "\" is not one that this version has");
  if (call.output_count == 0 || call.output_count > op->max_outputs)
    fail(QTN_EINVAL, name, ": ", call.output_count, " outputs wanted, it has ", op->max_outputs);
  check_call(*op, call);
  const auto quantized = [](const Tensor *t) { return t && t->quantized(); };
  if (!quantizer && std::none_of(call.inputs.begin(), call.inputs.end(), quantized)) return run_op(*op, call);
  std::vector<QuantizerPtr> quantizers(call.output_count, quantizer ? quantizer : kept_grid(*op, call));
  for (std::size_t i = 1; i < quantizers.size(); ++i)  // masks and indices have none
    if (op->output_dtype && op->output_dtype(call.attrs, i, QTN_FLOAT32) != QTN_FLOAT32) quantizers[i] = nullptr;
  return run_quantized_op(*op, call, quantizers);
}

}  // namespace

std::vector<Tensor> run_eager(const std::string &name, std::span<const Tensor *const> inputs, std::size_t output_count,
                              const Attrs &attrs) {
  return run(name, Call{attrs, inputs, output_count}, nullptr);
}

Tensor run_eager(const std::string &name, std::span<const Tensor *const> inputs, const Attrs &attrs,
                 const QuantizerPtr &quantizer) {
  return run(name, Call{attrs, inputs}, quantizer)[0];
}

Tensor linear(const Tensor &x, const Tensor &weight, const Tensor *bias, const QuantizerPtr &quantizer) {
  if (weight.quantized() && weight.quantizer()->zeros_are_floats())
    return linear(x, dequantize(weight), bias, quantizer);
  if (weight.rank() != 2) fail(QTN_ESHAPE, "linear: weight is ", to_string(weight.shape()), ", not of rank 2");
  if (x.rank() == 0) fail(QTN_ESHAPE, "linear: x is a scalar, without features");
  if (x.shape().back() != weight.dim(1))
    fail(QTN_ESHAPE, "linear: weight has ", weight.dim(1), " input features, x has ", x.shape().back());
  check_operands("linear", x, weight, bias, quantizer);

  const std::int64_t in = weight.dim(1);
  const std::int64_t rows = element_count(x.shape(), 0, x.rank() - 1);
  const Tensor x2 = x.to_contiguous().reshaped(Shape{rows, in});
  const bool dynamic = !x.quantized() && weight.quantized() && is_8bit(weight);
  const QuantizerPtr grid = dynamic ? dynamic_quantizer("linear", x2, weight.quantizer()->numerics()) : x.quantizer();
  const QuantizerPtr result = dynamic ? nullptr : quantizer;

  std::optional<Tensor> y;
  if (grid && weight.quantized()) y = integer_linear(x2, *grid, weight, bias, result);
  if (!y) y = linear_rows(dynamic ? quantize(x2, grid) : x2, weight, bias, result);
  if (dynamic && quantizer) y = quantize(*y, quantizer);
  Shape shape = x.shape();
  shape[shape.size() - 1] = weight.dim(0);
  return y->reshaped(shape);
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
