// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.hpp"
#include "ops/common/activation.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("Swish", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_swish(call.attrs.get_float("alpha", 1), *call.in(0), outputs[0]);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const double alpha = run.call.attrs.get_float("alpha", 1);
  backward_by_input(run, dx, [=](float slope, float x) {
    const double at = alpha * static_cast<double>(x), gate = 1 / (1 + exponential(std::min(-at, 700.0)));
    return slope * static_cast<float>(gate * (1 + at * (1 - gate)));
  });
}

}  // namespace

const OpDef kSwish{.name = "Swish",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .max_outputs = 1,
                   .attrs = kAttrs,
                   .infer = infer,
                   .run = run,
                   .elementwise = true,
                   .backward = backward,
                   .keeps = {.inputs = kAllInputs}};

}  // namespace qtn::ops
