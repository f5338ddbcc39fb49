// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("ThresholdedRelu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 1);
  map_reals(call, outputs, [=](auto x) {
    using T = decltype(x);
    return x > static_cast<T>(alpha) || std::isnan(x) ? x : T(0);
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const auto alpha = static_cast<float>(run.call.attrs.get_float("alpha", 1));
  backward_by_input(run, dx, [=](float slope, float x) { return x > alpha ? slope : 0; });
}

}  // namespace

const OpDef kThresholdedRelu{.name = "ThresholdedRelu",
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
