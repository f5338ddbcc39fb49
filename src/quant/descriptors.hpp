// SPDX-License-Identifier: Apache-2.0
// The predefined QuantDescriptors of NVIDIA's toolkit, by name.
#pragma once

#include <string>

#include "core/attrs.hpp"

namespace qtn::quant {

struct Descriptor {
  bool is_signed;
  int axis;  ///< the one that is kept; -1: one range for the tensor
};

/// Throws QTN_EINVAL "<who>: ..." on another name, listing those there are.
const Descriptor &descriptor(const std::string &name, const char *who);

/// Settings of an observer, with what its "descriptor" says where they say nothing themselves.
Attrs described(const Attrs &observer);

}  // namespace qtn::quant
