// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

bool adds_what_is_computed(const Graph &g, const Node &node) {
  const ValueId addend = input_of(node, 2);
  const Tensor *weight = node.op == &ops::kGemm ? float_constant(g, node.inputs[1]) : nullptr;
  return weight && weight->rank() == 2 && addend != kNoValue && !g.value(addend).is_constant() &&
         !g.value(addend).quantizer && !g.value(node.outputs[0]).quantizer && node.attrs.get_float("beta", 1) != 0;
}

ValueId float_like(Graph &g, ValueId v, const char *suffix) {
  Value value = g.value(v);
  value.name = g.names.make(g.values, value.name + suffix);
  return g.add_value(std::move(value));
}

}  // namespace

void add_after_products(Graph &g) {
  const std::vector<Node> nodes = std::exchange(g.nodes, {});
  for (const Node &node : nodes) {
    if (!adds_what_is_computed(g, node)) {
      g.nodes.push_back(node);
      continue;
    }
    ValueId addend = node.inputs[2];
    if (const auto beta = static_cast<float>(node.attrs.get_float("beta", 1)); beta != 1) {
      const ValueId factor = g.add_constant(node.name + "_beta", Tensor::scalar(beta)),
                    scaled = float_like(g, addend, "_scaled");
      g.nodes.push_back({node.name + "_beta", &ops::kMul, {}, {addend, factor}, {scaled}, {}});
      addend = scaled;
    }
    Node product = node;
    product.inputs.resize(2);
    product.outputs = {float_like(g, node.outputs[0], "_product")};
    product.attrs.erase("beta");
    product.clamp.reset();
    g.nodes.push_back({node.name + "_addend", &ops::kAdd, {}, {product.outputs[0], addend}, node.outputs, node.clamp});
    g.nodes.insert(g.nodes.end() - 1, std::move(product));
  }
}

}  // namespace qtn::graph
