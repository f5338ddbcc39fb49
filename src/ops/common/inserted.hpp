// SPDX-License-Identifier: Apache-2.0
// What stands where an operator that moves elements moves none: Pad's input, or Resize's attribute.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// Whether an attribute says it, for places outside of an image.
inline bool inserts_attribute(const Attrs &attrs) {
  return attrs.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
}

/// Whether results may hold a number that no operand has, and no operand's grid need have.
inline bool inserts_number(const OpDef &op, const Attrs &attrs) {
  return op.fill != kVariadic || inserts_attribute(attrs);
}

}  // namespace qtn::ops
