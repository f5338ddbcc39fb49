// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/optimizer_step.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"decay_factor", AttrSpec::kFloat}, {"epsilon", AttrSpec::kFloat}, {"norm_coefficient", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_optimizer_step("Adagrad", call, 3); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double rate = rate_of(call) / (1 + step_of(call) * call.attrs.get_float("decay_factor", 0)),
               epsilon = call.attrs.get_float("epsilon", 1e-6), decay = call.attrs.get_float("norm_coefficient", 0);
  run_optimizer_step<3>("Adagrad", call, outputs, [&]<class T>(std::array<T, 3> &p) {
    const T gradient = static_cast<T>(decay) * p[0] + p[1];
    p[2] += gradient * gradient;
    p[0] -= static_cast<T>(rate) * gradient / (std::sqrt(p[2]) + static_cast<T>(epsilon));
  });
}

}  // namespace

const OpDef kAdagrad{.name = "Adagrad",
                     .domain = kTrainingDomain,
                     .min_inputs = 3,
                     .max_inputs = kVariadic,
                     .max_outputs = kVariadic,
                     .attrs = kAttrs,
                     .infer = infer,
                     .run = run,
                     .moved = {2, 1}};

}  // namespace qtn::ops
