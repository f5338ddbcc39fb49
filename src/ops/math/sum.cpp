// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradient.hpp"
#include "ops/common/variadic.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_real("Sum", "input 0", call.in(0));
  return infer_variadic("Sum", call);
}

void run(const Call &call, std::span<Tensor> outputs) { add_operands(call, outputs[0]); }

void backward(const Backward &run, std::span<const Tensor> dx) {
  for (const Tensor &d : dx) term_gradient(d, run.dy[0]);
}

/// The sum of two operands is what Add computes, which has a form on integers.
void upgrade(OldNode &node) {
  if (node.input_count == 2) node.op = "Add";
}

}  // namespace

const OpDef kSum{.name = "Sum",
                 .min_inputs = 1,
                 .max_inputs = kVariadic,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .elementwise = true,
                 .backward = backward,
                 .sum = true,
                 .upgrade = upgrade};

}  // namespace qtn::ops
