// SPDX-License-Identifier: Apache-2.0
#include "ops/common/log_likelihood.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kOp = "NegativeLogLikelihoodLoss";

Types infer(const Call &call) { return infer_log_likelihood(kOp, call); }

void run(const Call &call, std::span<Tensor> outputs) { log_likelihood(kOp, call, *call.in(0), outputs[0]); }

}  // namespace

const OpDef kNegativeLogLikelihoodLoss{.name = "NegativeLogLikelihoodLoss",
                                       .min_inputs = 2,
                                       .max_inputs = 3,
                                       .max_outputs = 1,
                                       .attrs = kLossAttrs,
                                       .infer = infer,
                                       .run = run};

}  // namespace qtn::ops
