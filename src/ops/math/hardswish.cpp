// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/activation.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("HardSwish", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_activation(kernels::Activation::hard_swish, call, outputs,
                 [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_activation(kernels::Activation::hard_swish, *run.call.in(0), run.dy[0], dx[0]);
}

}  // namespace

const OpDef kHardSwish{.name = "HardSwish",
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
