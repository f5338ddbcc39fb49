// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Sqrt", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_reals(call, outputs, [](auto x) { return std::sqrt(x); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_output(run, dx, [](float slope, float y) { return slope / (2 * y); });
}

}  // namespace

const OpDef kSqrt{.name = "Sqrt",
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
