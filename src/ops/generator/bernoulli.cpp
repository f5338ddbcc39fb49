// SPDX-License-Identifier: Apache-2.0
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dtype", AttrSpec::kInt}, {"seed", AttrSpec::kFloat}};

Types infer(const Call &call) {
  require_real("Bernoulli", "input", call.in(0));
  return {{dtype_attribute("Bernoulli", call.attrs, "dtype", call.in(0)->dtype()), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const auto draw = [draws = Draws(call.attrs)](const auto *chance) {
    return [=](std::int64_t i) { return draws.uniform(i) < static_cast<double>(chance[i]) ? 1.0 : 0.0; };
  };
  x.dtype() == QTN_FLOAT64 ? generate(outputs[0], draw(x.as<const double>()))
                           : generate(outputs[0], draw(x.as<const float>()));
}

}  // namespace

const OpDef kBernoulli{.name = "Bernoulli",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .infer = infer,
                       .run = run,
                       .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
