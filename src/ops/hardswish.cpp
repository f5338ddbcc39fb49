// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/elementwise.hpp"
#include "ops/gradient.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_float_unary("HardSwish", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_elements<float>(*call.in(0), outputs[0],
                      [](float x) { return x * std::clamp(x * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_input(run, dx, [](float slope, float x) {
    return slope * choose(x < 3, choose(x <= -3, 0, x * (1.0f / 3.0f) + 0.5f), 1);
  });
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
