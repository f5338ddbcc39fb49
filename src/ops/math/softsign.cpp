// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Softsign", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_reals(call, outputs, [](auto x) { return x / (1 + std::abs(x)); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_input(run, dx, [](float slope, float x) {
    const float size = 1.0f + std::fabs(x);
    return slope / (size * size);
  });
}

}  // namespace

const OpDef kSoftsign{.name = "Softsign",
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
