// SPDX-License-Identifier: Apache-2.0
#include "ops/common/optimizer_step.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat},
                               {"beta", AttrSpec::kFloat},
                               {"mode", AttrSpec::kString},
                               {"norm_coefficient", AttrSpec::kFloat}};

bool is_nesterov(const Attrs &attrs) {
  const std::string mode = attrs.get_string("mode", "");
  if (mode != "standard" && mode != "nesterov")
    fail(QTN_EINVAL, "Momentum: mode is \"", mode, "\", not \"standard\" or \"nesterov\"");
  return mode == "nesterov";
}

Types infer(const Call &call) {
  is_nesterov(call.attrs);
  for (const char *name : {"alpha", "beta", "norm_coefficient"})
    if (!call.attrs.has(name)) fail(QTN_EINVAL, "Momentum: attribute \"", name, "\" is missing");
  return infer_optimizer_step("Momentum", call, 3);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 0), decay = call.attrs.get_float("norm_coefficient", 0),
               beta = step_of(call) > 0 ? call.attrs.get_float("beta", 1) : 1, rate = rate_of(call);
  const bool nesterov = is_nesterov(call.attrs);
  run_optimizer_step<3>("Momentum", call, outputs, [&]<class T>(std::array<T, 3> &p) {
    const T gradient = static_cast<T>(decay) * p[0] + p[1];
    p[2] = static_cast<T>(alpha) * p[2] + static_cast<T>(beta) * gradient;
    p[0] -= static_cast<T>(rate) * (nesterov ? gradient + static_cast<T>(alpha) * p[2] : p[2]);
  });
}

}  // namespace

const OpDef kMomentum{.name = "Momentum",
                      .domain = kTrainingDomain,
                      .min_inputs = 3,
                      .max_inputs = kVariadic,
                      .max_outputs = kVariadic,
                      .attrs = kAttrs,
                      .infer = infer,
                      .run = run,
                      .moved = {2, 1}};

}  // namespace qtn::ops
