// SPDX-License-Identifier: Apache-2.0
#include "ops/common/activation.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("QuickGelu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_swish(static_cast<double>(static_cast<float>(call.attrs.get_float("alpha", 1.702))), *call.in(0), outputs[0]);
}

}  // namespace

const OpDef kQuickGelu{.name = "QuickGelu",
                       .domain = kMicrosoft,
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .infer = infer,
                       .run = run,
                       .elementwise = true};

}  // namespace qtn::ops
