// SPDX-License-Identifier: Apache-2.0
// The loss of log-probabilities against class numbers, for NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include "ops/common/infer.hpp"

namespace qtn::ops {

inline constexpr AttrSpec kLossAttrs[] = {{"ignore_index", AttrSpec::kInt}, {"reduction", AttrSpec::kString}};

/// Types of the loss of x [N, C, ...] against classes [N, ...] with weights [C].
Types infer_log_likelihood(const char *op, const Call &call);

/// y = the loss of log-probabilities of the shape and type of input 0.
void log_likelihood(const char *op, const Call &call, const Tensor &log_probabilities, const Tensor &y);

}  // namespace qtn::ops
