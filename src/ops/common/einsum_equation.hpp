// SPDX-License-Identifier: Apache-2.0
// The equation of Einsum: which axes of its operands are one, and which are summed.
#pragma once

#include <string>
#include <vector>

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Letters as numbers; axes that an ellipsis stands for have numbers of their own.
struct EinsumEquation {
  std::vector<std::vector<std::size_t>> operands;  ///< the label of each axis
  std::vector<std::size_t> result;
  std::vector<std::int64_t> dims;  ///< by label
};

/// Throws QTN_EINVAL or QTN_ESHAPE where the text is no equation for operands of these shapes.
EinsumEquation parse_equation(const std::string &text, std::span<const Tensor *const> operands);

}  // namespace qtn::ops
