// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear on PyTorch's grids, in files: a function of ONNX's own operators, which a file brings along.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace qtn::onnx {

inline constexpr const char *kFunctionDomain = "qtensor";
inline constexpr int kFunctionIrVersion = 8;  ///< the first that has functions

/// The numerics of a DynamicQuantizeLinear that ONNX's own operator does not have; nullopt for any other node. Throws
/// QTN_EUNSUPPORTED, naming the node, where no function can say what it does either.
std::optional<Numerics> function_numerics(const graph::Node &node);

/// "DynamicQuantizeLinear_fbgemm", and back; nullopt for any other name.
std::string function_name(Numerics numerics);
std::optional<Numerics> function_numerics(const std::string &domain, const std::string &name);

/// x -> y, y_scale, y_zero_point with the bits of the operator, in operators of opset 13 and later.
graph::Graph function_body(Numerics numerics);

}  // namespace qtn::onnx
