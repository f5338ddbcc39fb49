// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cumulative.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_cumulative("CumProd", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_cumulative("CumProd", call, outputs[0], 1, [](auto a, auto b) { return a * b; });
}

}  // namespace

const OpDef kCumProd{.name = "CumProd",
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .max_outputs = 1,
                     .attrs = kCumulativeAttrs,
                     .infer = infer,
                     .run = run};

}  // namespace qtn::ops
