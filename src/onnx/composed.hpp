// SPDX-License-Identifier: Apache-2.0
// Operators that a file may hold and that the library has as several of ONNX's own: fused operators of ONNX Runtime,
// sequences whose positions are constants, attention whose scores graphs change, forms of old opsets.
#pragma once

#include "onnx/messages.hpp"

namespace qtn::onnx {

/// Replaces them in the graph and in those within it. What cannot be said otherwise stays as it is. Throws
/// QTN_EUNSUPPORTED naming the node where its attributes cannot be said, and QTN_ENOMEM where what is made takes more
/// than a file of so many bytes, and what is read of the folder for it, may ask for.
void rewrite_composed(GraphProto &graph, std::int64_t opset, const DataFolder &folder, std::size_t file_bytes);

/// Whether rewrite_composed() has a rule for what the node names, at any opset.
bool is_composed(const NodeProto &node);

}  // namespace qtn::onnx
