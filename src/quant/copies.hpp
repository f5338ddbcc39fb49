// SPDX-License-Identifier: Apache-2.0
// A value that a node makes in float, and that some nodes read as integers and others in float, becomes two: rounding is
// for those that need it. Residual connections of transformers would otherwise carry the rounding of every layer along.
// So does an input that is an output, too.
#pragma once

#include "quant/placement.hpp"

namespace qtn::quant {

/// Puts an Identity behind each such value, whose result is read by the nodes that read integers, and has its name.
/// Values that a rule of the configuration names stay one. True where there was any: the graph has to be placed again.
bool copy_for_integer_readers(graph::Graph &g, const Placement &placement, const Config &config);

/// The node of that name which makes `to` of `from`.
graph::Node copy_node(const std::string &name, graph::ValueId from, graph::ValueId to);

/// Whether a node of a simplified graph is such an Identity.
bool is_copy(const graph::Node &node);

}  // namespace qtn::quant
