// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear on PyTorch's grids, or with one for each row, in files: a function of ONNX's own operators, which a file brings along.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::onnx {

inline constexpr const char *kFunctionDomain = "qtensor";
inline constexpr int kFunctionIrVersion = 8;  ///< the first that has functions

/// The grid of a DynamicQuantizeLinear that ONNX's own operator does not have; nullopt for any other node. Throws
/// QTN_EUNSUPPORTED, naming the node, where no function can say what it does either.
std::optional<ops::OwnGrid> function_grid(const graph::Node &node);

/// "DynamicQuantizeLinear_fbgemm", and back; nullopt for any other name.
std::string function_name(const ops::OwnGrid &grid);
std::optional<ops::OwnGrid> function_grid(const std::string &domain, const std::string &name);

/// x -> y, y_scale, y_zero_point with the bits of the operator, in operators of the newest opset.
graph::Graph function_body(const ops::OwnGrid &grid);

}  // namespace qtn::onnx
