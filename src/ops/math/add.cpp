// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arithmetic.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/integer_binary.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_binary("Add", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  if (outputs[0].dtype() == QTN_FLOAT32)
    return run_arithmetic(kernels::Arithmetic::add, *call.in(0), *call.in(1), outputs[0]);
  run_binary(call, outputs, [](auto a, auto b) { return a + b; });
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  return run_integer_binary(call, output, clamp, [](const Quantizer &a, const Quantizer &b, const Quantizer &y) {
    return [ma = add_multiplier(a.scale(), y.scale()), mb = add_multiplier(b.scale(), y.scale())](
               std::int32_t u, std::int32_t v) { return static_cast<float>(u) * ma + static_cast<float>(v) * mb; };
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  for (const Tensor &d : dx) term_gradient(d, run.dy[0]);
}

}  // namespace

const OpDef kAdd{.name = "Add",
                 .min_inputs = 2,
                 .max_inputs = 2,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .elementwise = true,
                 .run_quantized = run_quantized,
                 .backward = backward,
                 .sum = true,
                 .activations = 2};

}  // namespace qtn::ops
