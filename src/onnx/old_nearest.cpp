// SPDX-License-Identifier: Apache-2.0
// Resize of opset 10 rounds places down along axes that grow, and up along those that shrink. Later opsets round all axes
// of a node in one way, so that one node or two say the same.
#include "onnx/old_nearest.hpp"

#include <algorithm>

#include "onnx/bodies.hpp"
#include "ops/common/old_nearest.hpp"

namespace qtn::onnx {
namespace {

using graph::Node;
using graph::ValueId;

class Settling {
 public:
  Settling(graph::Graph &g, graph::UniqueNames &node_names) : g_(g), node_names_(node_names) {}

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes) {
      change_bodies(node, [&](graph::Graph &body) { Settling(body, node_names_).run(); });
      if (node.op == &ops::kResize && ops::rounds_by_scale(node.attrs)) settle(node);
      g_.nodes.push_back(std::move(node));
    }
  }

 private:
  /// A node that grows comes before one that shrinks, unless scales are known and only one is needed.
  void settle(Node &node) {
    const Tensor &scales = g_.value(node.inputs[2]).constant;
    const bool known = scales.has_data() && scales.dtype() == QTN_FLOAT32;
    const std::vector<float> values = known ? float_values(scales, "scales") : std::vector<float>{};
    if (known && std::ranges::none_of(values, [](float s) { return s < 1; })) return set_rounding(node, "floor");
    if (!known || std::ranges::any_of(values, [](float s) { return s > 1; })) {
      Node grow = node;
      grow.name = node_names_.make(node.name + "_grow");
      grow.inputs[2] = bounded(node, "Max");
      grow.outputs[0] = node.inputs[0] = add_value(node.name + "_grown");
      node.inputs[2] = bounded(node, "Min");
      set_rounding(grow, "floor");
      g_.nodes.push_back(std::move(grow));
    }
    set_rounding(node, "ceil");
  }

  static void set_rounding(Node &node, const char *mode) {
    node.attrs.erase(ops::kRoundsByScale);
    node.attrs.set("nearest_mode", std::string(mode));
  }

  /// The scales, at least 1 or at most.
  ValueId bounded(const Node &resize, const char *op) {
    Node node;
    node.name = node_names_.make(resize.name + "_" + op);
    node.op = ops::find_op(op);
    node.inputs = {resize.inputs[2], g_.add_constant(node.name + "_bound", Tensor::scalar(1))};
    node.outputs = {add_value(node.name + "_scales")};
    g_.nodes.push_back(node);
    return node.outputs[0];
  }

  ValueId add_value(const std::string &name) {
    graph::Value value;
    value.name = g_.names.make(g_.values, name);
    return g_.add_value(std::move(value));
  }

  graph::Graph &g_;
  graph::UniqueNames &node_names_;
};

}  // namespace

void settle_nearest(graph::Graph &g, graph::UniqueNames &node_names) { Settling(g, node_names).run(); }

}  // namespace qtn::onnx
