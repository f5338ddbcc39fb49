// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "graph/passes/passes.hpp"
#include "graph/unique_names.hpp"

namespace qtn::graph {

namespace {

class Separation {
 public:
  explicit Separation(Graph &g) : g_(g) {
    for (const Value &value : g.values) value_names_.take(value.name);
    for (const Node &node : g.nodes) node_names_.take(node.name);
  }

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes) {
      g_.nodes.push_back(std::move(node));
      if (g_.nodes.back().clamp) split();
    }
  }

 private:
  /// The last node without its clamp, then the clamp.
  void split() {
    Node &node = g_.nodes.back();
    const ops::Clamp clamp = *node.clamp;
    const ValueId v = node.outputs[0];
    const std::string name = g_.value(v).name, of = node.name;
    Value raw;
    raw.name = value_names_.make(name + "_unclamped");
    raw.dtype = QTN_FLOAT32;
    raw.shape = g_.value(v).shape;
    node.clamp.reset();
    node.outputs[0] = g_.add_value(std::move(raw));
    Node last{"", nullptr, {}, {node.outputs[0]}, {v}, {}};
    if (clamp.lo == 0.0f && std::isinf(clamp.hi)) {
      last.name = node_names_.make(of + "_Relu");
      last.op = ops::find_op("Relu");
    } else {
      last.name = node_names_.make(of + "_Clip");
      last.op = ops::find_op("Clip");
      last.inputs.push_back(std::isinf(clamp.lo) ? kNoValue : add_bound(name + "_min", clamp.lo));
      if (!std::isinf(clamp.hi)) last.inputs.push_back(add_bound(name + "_max", clamp.hi));
    }
    g_.nodes.push_back(std::move(last));
  }

  ValueId add_bound(const std::string &name, float bound) {
    Value value;
    value.name = value_names_.make(name);
    value.dtype = QTN_FLOAT32;
    value.shape = Shape{};
    value.constant = Tensor::scalar(bound);
    return g_.add_value(std::move(value));
  }

  Graph &g_;
  UniqueNames value_names_, node_names_;
};

}  // namespace

void separate_clamps(Graph &g) { Separation(g).run(); }

}  // namespace qtn::graph
