// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor.hpp"

namespace qtn::train {

/// `weight` times the cross entropy of make_loss(), for those losses that it is a part of. `who` begins error messages.
double cross_entropy(const char *who, const Tensor &logits, const Tensor &target, double smoothing, double weight,
                     const Tensor &dy);

}  // namespace qtn::train
