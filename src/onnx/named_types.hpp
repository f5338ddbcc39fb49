// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "onnx/messages.hpp"

namespace qtn::onnx {

/// The element types, as onnx.TensorProto.DataType, that a network computes in: those that it says of its values, those
/// that nodes make, and those of constants among which nodes compute. Weights of other types are only stored in them.
std::set<std::int32_t> named_types(const GraphProto &graph);

}  // namespace qtn::onnx
