// SPDX-License-Identifier: Apache-2.0
#include "ops/common/activation.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("LeakyRelu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 0.01);
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (x.dtype() == QTN_FLOAT32) return run_leaky(static_cast<float>(alpha), x, y);
  map_elements<double>(x, y, [alpha](double v) { return v < 0 ? alpha * v : v; });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const float alpha = static_cast<float>(run.call.attrs.get_float("alpha", 0.01));
  backward_by_input(run, dx, [alpha](float slope, float x) { return choose(x > 0, slope, alpha * slope); });
}

}  // namespace

const OpDef kLeakyRelu{.name = "LeakyRelu",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .infer = infer,
                       .run = run,
                       .elementwise = true,
                       .backward = backward,
                       .keeps = {.inputs = kAllInputs},
                       .homogeneous = true};

}  // namespace qtn::ops
