// SPDX-License-Identifier: Apache-2.0
// What ONNX has no operator for is a function of ONNX's own operators: DynamicQuantizeLinear on PyTorch's grids, or with one
// for each row, and DynamicMatMul. Files hold its nodes, from which a reader knows it again; files of 0.1 bring the function
// along, and call it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::onnx {

/// The function that says what the node does; nullopt where an operator of files does. Throws QTN_EUNSUPPORTED, naming
/// the node, where no function can say it either.
std::optional<std::string> function_of(const graph::Node &node);

/// What a function stands for.
struct FunctionMeaning {
  const ops::OpDef *op;
  Attrs attrs;
};

/// All of them.
std::vector<std::string> function_names();

/// nullopt for names that are no function's.
std::optional<FunctionMeaning> function_meaning(const std::string &domain, const std::string &name);

/// Those of its formula, one or several times each.
std::vector<const ops::OpDef *> function_operators(const std::string &name);

/// Its formula, with the bits of the operator, in operators of the newest opset.
graph::Graph function_body(const std::string &name);

/// Puts the nodes of functions in the place of the nodes that they stand for. Throws as function_of().
void inline_own_functions(graph::Graph &g);

/// The inverse, of a sorted graph.
void recognize_own_functions(graph::Graph &g);

}  // namespace qtn::onnx
