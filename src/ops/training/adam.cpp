// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/optimizer_step.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat},
                               {"beta", AttrSpec::kFloat},
                               {"epsilon", AttrSpec::kFloat},
                               {"norm_coefficient", AttrSpec::kFloat},
                               {"norm_coefficient_post", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_optimizer_step("Adam", call, 4); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 0.9), beta = call.attrs.get_float("beta", 0.999),
               epsilon = call.attrs.get_float("epsilon", 1e-6), decay = call.attrs.get_float("norm_coefficient", 0),
               left = 1 - call.attrs.get_float("norm_coefficient_post", 0), step = step_of(call);
  double rate = rate_of(call);
  if (step > 0) rate *= std::sqrt(1 - std::pow(beta, step)) / (1 - std::pow(alpha, step));
  run_optimizer_step<4>("Adam", call, outputs, [&]<class T>(std::array<T, 4> &p) {
    const T gradient = static_cast<T>(decay) * p[0] + p[1];
    p[2] = static_cast<T>(alpha) * p[2] + static_cast<T>(1 - alpha) * gradient;
    p[3] = static_cast<T>(beta) * p[3] + static_cast<T>(1 - beta) * (gradient * gradient);
    p[0] -= static_cast<T>(rate) * (p[2] / (std::sqrt(p[3]) + static_cast<T>(epsilon)));
    p[0] *= static_cast<T>(left);
  });
}

}  // namespace

const OpDef kAdam{.name = "Adam",
                  .domain = kTrainingDomain,
                  .min_inputs = 3,
                  .max_inputs = kVariadic,
                  .max_outputs = kVariadic,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .moved = {2, 1}};

}  // namespace qtn::ops
