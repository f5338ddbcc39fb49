// SPDX-License-Identifier: Apache-2.0
#include "ops/common/activation.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Atan", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_activation(kernels::Activation::atan, call, outputs, [](double x) { return std::atan(x); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_activation(kernels::Activation::atan, *run.call.in(0), run.dy[0], dx[0]);
}

}  // namespace

const OpDef kAtan{.name = "Atan",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .backward = backward,
                  .keeps = {.inputs = kAllInputs}};

}  // namespace qtn::ops
