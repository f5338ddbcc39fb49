// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::train {

/// Options of cross_entropy, as make_loss() says.
struct Classes {
  std::int64_t axis = 1;
  std::optional<std::int64_t> ignored = {};  ///< the label
  double smoothing = 0;
};

/// The value of "class_axis". Throws QTN_EINVAL where it is 0, the axis of samples.
std::int64_t class_axis(const Attrs &attrs, const char *who);

/// `weight` times the cross entropy of make_loss(), for those losses that it is a part of. `who` begins error messages.
double cross_entropy(const char *who, const Tensor &logits, const Tensor &target, const Classes &classes, double weight,
                     const Tensor &dy);

}  // namespace qtn::train
