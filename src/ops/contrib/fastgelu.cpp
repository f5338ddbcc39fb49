// SPDX-License-Identifier: Apache-2.0
#include "ops/common/fused_gelu.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_fused_gelu("FastGelu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_fused_gelu(kernels::Activation::gelu_by_tanh, call, outputs[0]);
}

}  // namespace

const OpDef kFastGelu{.name = "FastGelu",
                      .domain = kMicrosoft,
                      .min_inputs = 1,
                      .max_inputs = 2,
                      .max_outputs = 1,
                      .attrs = {},
                      .infer = infer,
                      .run = run};

}  // namespace qtn::ops
