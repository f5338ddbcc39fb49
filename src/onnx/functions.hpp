// SPDX-License-Identifier: Apache-2.0
// Operators that a model brings with it.
#pragma once

#include "onnx/messages.hpp"

namespace qtn::onnx {

/// Replaces each node that calls one of the functions, in the graph and in those within it, by the function's nodes, and
/// these by what they call. Operators that `is_known` stay. Throws QTN_EFORMAT where functions call each other in a
/// circle, QTN_EUNSUPPORTED where they come to far more nodes than the file has.
void inline_functions(GraphProto &graph, const std::vector<FunctionProto> &functions,
                      bool (*is_known)(const NodeProto &));

}  // namespace qtn::onnx
