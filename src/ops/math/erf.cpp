// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Erf", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_reals(call, outputs, [](auto x) { return std::erf(x); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_input(
      run, dx, [](float slope, float x) { return slope * 2 * std::numbers::inv_sqrtpi_v<float> * std::exp(-x * x); });
}

}  // namespace

const OpDef kErf{.name = "Erf",
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
