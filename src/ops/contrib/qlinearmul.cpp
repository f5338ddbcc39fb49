// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QLinearMul";

Types infer(const Call &call) { return infer_qlinear_binary(kName, kMul, call); }

void run(const Call &call, std::span<Tensor> outputs) { run_qlinear_binary(kName, kMul, call, outputs[0]); }

}  // namespace

const OpDef kQLinearMul{.name = kName,
                        .domain = kMicrosoft,
                        .min_inputs = 2,
                        .max_inputs = 8,
                        .max_outputs = 1,
                        .attrs = {},
                        .infer = infer,
                        .run = run};

}  // namespace qtn::ops
