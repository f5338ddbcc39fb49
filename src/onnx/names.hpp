// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/unique_names.hpp"
#include "onnx/messages.hpp"

namespace qtn::onnx {

/// Takes every name of a value in the graph and in those within it, so that new ones differ from all.
void take_names(const GraphProto &graph, graph::UniqueNames &names);

}  // namespace qtn::onnx
