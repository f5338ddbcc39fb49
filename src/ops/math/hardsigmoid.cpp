// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}, {"beta", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("HardSigmoid", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 0.2), beta = call.attrs.get_float("beta", 0.5);
  map_reals(call, outputs, [=](auto x) {
    using T = decltype(x);
    return std::clamp(static_cast<T>(alpha) * x + static_cast<T>(beta), T(0), T(1));
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const float alpha = static_cast<float>(run.call.attrs.get_float("alpha", 0.2));
  backward_by_output(run, dx, [alpha](float slope, float y) { return choose((y > 0) & (y < 1), alpha * slope, 0); });
}

}  // namespace

const OpDef kHardSigmoid{.name = "HardSigmoid",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .elementwise = true,
                         .backward = backward,
                         .keeps = {.outputs = true},
                         .bounds = Clamp{0, 1}};

}  // namespace qtn::ops
