// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/gradient.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_float_unary("Tanh", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_elements<float>(*call.in(0), outputs[0], [](float x) { return std::tanh(x); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_output(run, dx, [](float slope, float y) { return slope * (1 - y * y); });
}

}  // namespace

const OpDef kTanh{.name = "Tanh",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .backward = backward,
                  .keeps = {.outputs = true}};

}  // namespace qtn::ops
