// SPDX-License-Identifier: Apache-2.0
// Applying an operator: checks, shapes, memory, and the choice between integer and float meaning.
#include "kernels/real/real.hpp"
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/empty.hpp"
#include "ops/common/infer.hpp"
#include "ops/custom.hpp"

namespace qtn::ops {
namespace {

/// Inputs of a call that differ from another's, and the memory they live in.
struct Inputs {
  explicit Inputs(std::span<const Tensor *const> from) : tensors(from.size()), pointers(from.begin(), from.end()) {}
  void replace(std::size_t i, Tensor t) {
    tensors[i] = std::move(t);
    pointers[i] = &tensors[i];
  }
  std::vector<Tensor> tensors;
  std::vector<const Tensor *> pointers;
};

template <class Change>
Inputs changed(const Call &call, Change &&change) {
  Inputs inputs(call.inputs);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i]) change(inputs, i, *call.inputs[i]);
  return inputs;
}

Inputs made_contiguous(const Call &call) {
  return changed(call, [](Inputs &inputs, std::size_t i, const Tensor &t) {
    if (!t.contiguous()) inputs.replace(i, t.to_contiguous());
  });
}

bool is_narrow(const Tensor &t) { return !t.quantized() && is_narrow_float(t.dtype()); }

/// Operands of narrow floats as float32.
Inputs widened(const Call &call) {
  return changed(call, [](Inputs &inputs, std::size_t i, const Tensor &t) {
    if (is_narrow(t)) inputs.replace(i, t.has_data() ? to_plain(t) : Tensor::meta(QTN_FLOAT32, t.shape()));
  });
}

bool reads_narrow(const OpDef &op, const Call &call) {
  return !op.any_type && std::ranges::any_of(call.inputs, [](const Tensor *t) { return t && is_narrow(*t); });
}

Types infer_types(const OpDef &op, const Call &call) {
  if (const Custom *custom = as_custom(op)) return custom->infer_types(call);
  if (!reads_narrow(op, call)) return op.infer(call);
  const Inputs inputs = widened(call);
  Types types = op.infer(Call{call.attrs, inputs.pointers, call.output_count});
  const Tensor *like = call.in(op.moved.first);
  if (!like || !is_floating(like->dtype()))
    like = *std::ranges::find_if(call.inputs, [](const Tensor *t) { return t && is_narrow(*t); });
  for (std::size_t o = 0; o < types.size(); ++o) {
    const qdtype wanted = made_dtype(op, call.attrs, o, like->dtype());
    if (types[o].dtype == QTN_FLOAT32 && is_narrow_float(wanted)) types[o].dtype = wanted;
  }
  return types;
}

// Integers pass through where every operand and result of the real type is on one grid.
bool can_move(const OpDef &op, const Call &call, std::span<const QuantizerPtr> quantizers) {
  const Tensor *first = call.in(op.moved.first);
  if (!moves(op, call.attrs) || !first || !first->quantized()) return false;
  // Others compute on codes of narrow floats as if these were the numbers, and not on packed integers.
  if (!op.any_type && (is_narrow_float(first->dtype()) || is_packed(first->dtype()))) return false;
  const Quantizer &grid = *first->quantizer();
  if (!grid.per_tensor()) return false;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor *t = call.inputs[i];
    if (op.moved.holds(i) && !t->quantized()) return false;
    if (t && t->quantized() && !same_grid(grid, *t->quantizer())) return false;
  }
  const Types types = infer_op(op, call);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool on_grid = quantizers[i] && same_grid(grid, *quantizers[i]);
    // Masks and indices are not moved.
    if (!on_grid && types[i].dtype != QTN_BOOL && types[i].dtype != QTN_INT64) return false;
  }
  return true;
}

Inputs as_reals(const Call &call) {
  return changed(call, [](Inputs &into, std::size_t i, const Tensor &t) {
    if (t.quantized()) into.replace(i, Tensor::meta(QTN_FLOAT32, t.shape()));
  });
}

bool is_8bit(const QuantizerPtr &q) { return q && q->per_tensor() && dtype_bits(q->dtype()) == 8; }

/// What a registered operator makes of integers; empty where it leaves these to the generic meaning.
std::vector<Tensor> run_custom(const Custom &op, const Call &call, std::span<const QuantizerPtr> quantizers) {
  if (!op.has_quantized() || !is_8bit(quantizers[0]) ||
      std::ranges::none_of(call.inputs, [](const Tensor *t) { return t && is_8bit(t->quantizer()); }))
    return {};
  const Types types = infer_op(op, Call{call.attrs, as_reals(call).pointers, call.output_count});
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (quantizers[i] && types[i].dtype != QTN_FLOAT32)
      fail(QTN_EDTYPE, op.name, ": output ", i, " is ", dtype_name(types[i].dtype), ", and only float32 is quantized");
    if (quantizers[i]) check_quantizer_fits(*quantizers[i], types[i].shape);
    outputs.emplace_back(quantizers[i] ? quantizers[i]->dtype() : types[i].dtype, types[i].shape, quantizers[i]);
  }
  const Inputs inputs = made_contiguous(call);
  return op.compute_quantized(Call{call.attrs, inputs.pointers, call.output_count}, outputs) ? outputs
                                                                                             : std::vector<Tensor>();
}

std::vector<Tensor> run_dequantized(const OpDef &op, const Call &call, std::span<const QuantizerPtr> quantizers,
                                    const Clamp *clamp) {
  const Inputs inputs = changed(call, [](Inputs &into, std::size_t i, const Tensor &t) {
    if (t.quantized()) into.replace(i, dequantize(t));
  });
  std::vector<Tensor> outputs = run_op(op, Call{call.attrs, inputs.pointers, call.output_count});
  if (clamp) clamp_elements(outputs[0], *clamp);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (quantizers[i]) outputs[i] = quantize(outputs[i], quantizers[i]);
  return outputs;
}

}  // namespace

void clamp_elements(const Tensor &y, const Clamp &clamp) {
  if (is_narrow(y)) {
    const Tensor wide = to_plain(y);
    clamp_elements(wide, clamp);
    return copy_elements(y, from_plain(wide, y.dtype()));
  }
  dispatch_number(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      // Integers meet Relu, and Clip without bounds: these have the type of what they clip, and are fused as float32.
      map_elements<T>(y, y, [lo = convert<T>(clamp.lo)](T v) { return std::max(v, lo); });
    } else if constexpr (std::is_same_v<T, float>) {
      const auto kernel = kernels::real_kernel().clamp;
      for_blocks(y.count(), [&](std::int64_t begin, std::int64_t end) {
        kernel(y.as<float>() + begin, static_cast<std::size_t>(end - begin), clamp.lo, clamp.hi);
      });
    } else {
      map_elements<T>(y, y, [lo = static_cast<T>(clamp.lo), hi = static_cast<T>(clamp.hi)](T v) {
        v = v <= lo ? lo : v;
        return v > hi ? hi : v;
      });
    }
  });
}

void check_call(const OpDef &op, const Call &call) {
  if (as_custom(op)) return;
  const std::size_t count = call.inputs.size();
  if (count < op.min_inputs || count > op.max_inputs)
    fail(QTN_EINVAL, op.name, ": ", count, " inputs given, ",
         op.max_inputs == kVariadic ? cat(op.min_inputs, " or more") : cat(op.min_inputs, " to ", op.max_inputs),
         " expected");
  const std::size_t required = op.max_inputs == kVariadic ? count : op.min_inputs;
  for (std::size_t i = 0; i < required; ++i)
    if (!call.inputs[i]) fail(QTN_EINVAL, op.name, ": input ", i, " is absent");
  if (call.output_count < 1 || call.output_count > op.max_outputs)
    fail(QTN_EINVAL, op.name, ": ", call.output_count, " outputs asked for, of at most ", op.max_outputs);
  call.attrs.check(op.attrs, op.name);
  if (op.check) op.check(call);
}

Types infer_op(const OpDef &op, const Call &call) {
  check_call(op, call);
  Types types = infer_types(op, call);
  if (types.size() < call.output_count)
    fail(QTN_EINVAL, op.name, ": makes ", types.size(), " outputs, the node has ", call.output_count);
  for (const TensorType &type : types) {
    std::int64_t bits;
    const auto size = static_cast<std::int64_t>(std::max(dtype_bits(type.dtype), 8u));
    if (__builtin_mul_overflow(element_count(type.shape), size, &bits))
      fail(QTN_ESHAPE, op.name, ": an output of ", to_string(type.shape), " is too large");
    // A dimension beside an empty one does not count above but still multiplies into strides.
    Shape filled = type.shape;
    for (std::int64_t &dim : filled) dim = std::max<std::int64_t>(dim, 1);
    element_count(filled);
  }
  return types;
}

void run_into(const OpDef &op, const Call &call, std::span<Tensor> outputs) {
  if (hold_nothing(outputs)) return;
  if (const Custom *custom = as_custom(op)) return custom->compute(call, outputs);
  const bool makes_narrow = !op.any_type && std::ranges::any_of(outputs, is_narrow);
  if (!makes_narrow && !reads_narrow(op, call)) return op.run(call, outputs);
  const Inputs inputs = widened(call);
  std::vector<Tensor> results(outputs.begin(), outputs.end());
  for (Tensor &t : results)
    if (is_narrow(t)) t = Tensor(QTN_FLOAT32, t.shape());
  op.run(Call{call.attrs, inputs.pointers, call.output_count, call.prepared, call.scratch}, results);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (is_narrow(outputs[o])) copy_elements(outputs[o], from_plain(results[o], outputs[o].dtype()));
}

std::vector<Tensor> run_op(const OpDef &op, const Call &call) {
  if (op.make) {
    check_call(op, call);
    if (!reads_narrow(op, call)) return op.make(call);
    const Inputs inputs = widened(call);
    return op.make(Call{call.attrs, inputs.pointers, call.output_count});
  }
  const Types types = infer_op(op, call);
  std::vector<Tensor> outputs;
  for (const TensorType &type : types) outputs.emplace_back(type.dtype, type.shape);
  if (moves(op, call.attrs)) {
    run_into(op, call, outputs);
  } else {
    const Inputs inputs = made_contiguous(call);
    run_into(op, Call{call.attrs, inputs.pointers, call.output_count}, outputs);
  }
  return outputs;
}

std::vector<Tensor> run_quantized_op(const OpDef &op, const Call &call, std::span<const QuantizerPtr> quantizers,
                                     const Clamp *clamp) {
  check_call(op, call);
  if (quantizers.size() != call.output_count)
    fail(QTN_EINVAL, op.name, ": ", quantizers.size(), " quantizers given for ", call.output_count, " outputs");
  // No sum of integers knows grids with zeros that are floats, and shapes follow from real numbers.
  const auto is_real = [&](const Tensor *const &t) {
    const auto i = static_cast<std::size_t>(&t - call.inputs.data());
    return t && t->quantized() &&
           (t->quantizer()->zeros_are_floats() ||
            (op.shapes_from.holds(i) && !(op.moved.holds(i) && moves(op, call.attrs))));
  };
  if (std::ranges::any_of(call.inputs, is_real)) {
    const Inputs reals = changed(call, [&](Inputs &into, std::size_t i, const Tensor &t) {
      if (is_real(call.inputs[i])) into.replace(i, dequantize(t));
    });
    return run_quantized_op(op, Call{call.attrs, reals.pointers, call.output_count}, quantizers, clamp);
  }
  if (!clamp && can_move(op, call, quantizers)) {
    std::vector<Tensor> outputs = run_op(op, call);
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = outputs[i].with_quantizer(quantizers[i]);
    return outputs;
  }
  if (const Custom *custom = as_custom(op); custom && !clamp)
    if (std::vector<Tensor> outputs = run_custom(*custom, call, quantizers); !outputs.empty()) return outputs;
  if (op.run_quantized && call.in(0)->quantized()) {
    const Inputs reals = as_reals(call);
    const Types types = infer_op(op, Call{call.attrs, reals.pointers, call.output_count});
    const QuantizerPtr &quantizer = quantizers[0];
    if (quantizer) check_quantizer_fits(*quantizer, types[0].shape);
    const Tensor output(quantizer ? quantizer->dtype() : types[0].dtype, types[0].shape, quantizer);
    if (output.count() == 0) return {output};
    const Inputs inputs = made_contiguous(call);
    if (op.run_quantized(Call{call.attrs, inputs.pointers, call.output_count}, output, clamp)) {
      if (clamp && !quantizer) clamp_elements(output, *clamp);
      return {output};
    }
  }
  return run_dequantized(op, call, quantizers, clamp);
}

}  // namespace qtn::ops
