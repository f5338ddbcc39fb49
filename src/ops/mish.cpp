// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "ops/gradient.hpp"
#include "ops/infer.hpp"
#include "ops/softplus.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Mish", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_reals(call, outputs, [](auto x) { return x * std::tanh(softplus(x)); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_input(run, dx, [](float slope, float x) {
    const float t = std::tanh(softplus(x));
    return slope * (t + x * (1 - t * t) / (1 + std::exp(-x)));
  });
}

}  // namespace

const OpDef kMish{.name = "Mish",
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
