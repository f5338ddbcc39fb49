// SPDX-License-Identifier: Apache-2.0
// What ONNX has no operator for is in files a function of ONNX's own operators, which a file brings along:
// DynamicQuantizeLinear on PyTorch's grids, or with one for each row, and DynamicMatMul.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace qtn::onnx {

inline constexpr int kFunctionIrVersion = 8;  ///< the first that has functions

/// The function that says what the node does; nullopt where an operator of files does. Throws QTN_EUNSUPPORTED, naming
/// the node, where no function can say it either.
std::optional<std::string> function_of(const graph::Node &node);

/// What a function stands for.
struct FunctionMeaning {
  const ops::OpDef *op;
  Attrs attrs;
};

/// nullopt for names that are no function's.
std::optional<FunctionMeaning> function_meaning(const std::string &domain, const std::string &name);

/// Its formula, with the bits of the operator, in operators of the newest opset.
graph::Graph function_body(const std::string &name);

}  // namespace qtn::onnx
