// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/activation.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Sigmoid", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_activation(kernels::Activation::sigmoid, call, outputs, [](double x) { return 1 / (1 + std::exp(-x)); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_activation(kernels::Activation::sigmoid, run.outputs[0], run.dy[0], dx[0]);
}

}  // namespace

const OpDef kSigmoid{.name = "Sigmoid",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = {},
                     .infer = infer,
                     .run = run,
                     .elementwise = true,
                     .backward = backward,
                     .keeps = {.outputs = true},
                     .bounds = Clamp{0, 1}};

}  // namespace qtn::ops
