// SPDX-License-Identifier: Apache-2.0
// The graphs that If, Loop and Scan run, as attributes of their nodes in a file and as bodies of graph::Node.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "graph/graph.hpp"
#include "graph/unique_names.hpp"
#include "onnx/messages.hpp"

namespace qtn::onnx {

/// A graph that was read, and the values of the outer graph that its last inputs stand for.
struct Body {
  graph::Graph graph;
  std::vector<graph::ValueId> captured;
};

bool has_bodies(const ops::OpDef &op);

/// The name of the attribute that holds body i.
const char *body_name(const ops::OpDef &op, std::size_t i);

/// The graphs of such a node, in the order of their names here. Throws QTN_EFORMAT where one is missing.
std::vector<const GraphProto *> body_protos(const NodeProto &node, const ops::OpDef &op);

/// Gives all bodies the same last inputs: what any of them captured of the outer graph, which is then `captured` of
/// each. Returns how many these are.
std::size_t join_captures(std::vector<Body> &bodies, const graph::Graph &outer);

/// Throws QTN_EFORMAT where inputs and outputs of the bodies do not fit the node, of whose inputs the first `own` are in
/// the file.
void check_bodies(const graph::Node &node, std::size_t own);

/// What the bodies say of an output of the node.
std::optional<qdtype> body_dtype(const graph::Node &node, std::size_t output);

/// The number of an iteration, which a Loop gives its body, and which some bodies take as a list of one.
void take_list_of_one(graph::Graph &body, graph::UniqueNames &node_names);

/// Lets f change a copy of each body, which takes its place.
template <class F>
void change_bodies(graph::Node &node, F &&f) {
  for (auto &body : node.bodies) {
    graph::Graph changed = *body;
    f(changed);
    body = std::make_shared<const graph::Graph>(std::move(changed));
  }
}

/// Throws the error again with the node in front of it.
[[noreturn]] void fail_at(const std::string &name, const std::string &op, const Error &e);

/// Nodes that say how values are quantized become quantizers, those of dynamic products one node, also in bodies.
void finish(graph::Graph &g, Numerics numerics);

}  // namespace qtn::onnx
