// SPDX-License-Identifier: Apache-2.0
// Operators that take scales and zero points as inputs, and the operators on real numbers that they are named after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Where a kind of node has what. The scale and the zero point of an operand follow it.
struct QOperatorForm {
  const char *name, *base;
  std::vector<std::size_t> operands;
  std::size_t y_scale;      ///< y_zero_point follows
  std::size_t bias = 0;     ///< int32, in products of the two operands; 0: none
  std::int64_t column = 0;  ///< axis of operand 1 along which scales are counted; below 0: from the last one

  bool is_product() const { return bias != 0 || column != 0; }
};

/// All but QLinearConcat, whose operands are any number.
std::span<const QOperatorForm> qoperator_forms();

/// The axis of a node's operand 1 along which scales are counted; `node` is of the form's name or of its base.
inline std::int64_t column_axis(const QOperatorForm &form, const graph::Node &node) {
  return node.attrs.get_int("transB", 0) != 0 ? 0 : form.column;
}

inline graph::ValueId input(const graph::Node &node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : graph::kNoValue;
}

}  // namespace qtn::onnx
