// SPDX-License-Identifier: Apache-2.0
// Layers that work on heads add their biases to features that are divided among them, where no product sees them.
#include <algorithm>
#include <vector>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/known_shapes.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

bool divides(const Node &node) {
  return node.op == &ops::kReshape || node.op == &ops::kSqueeze || node.op == &ops::kUnsqueeze;
}

class Biases {
 public:
  explicit Biases(Graph &g) : g_(g), facts_(g) {}

  void run() {
    bool any = false;
    const std::size_t count = g_.nodes.size();
    for (std::size_t n = 0; n < count; ++n)
      for (const std::size_t i : {0, 1})
        if (g_.nodes[n].op == &ops::kAdd && bring(n, i)) {
          any = true;
          break;
        }
    if (any) sort_topologically(g_);
  }

 private:
  /// The node that makes v for one reader alone, without a grid or a clamp.
  std::int32_t maker(ValueId v) const {
    if (v == kNoValue || g_.value(v).quantizer || !facts_.is_float(v) || !facts_.uses.single_use(v)) return -1;
    const std::int32_t n = facts_.uses.producer[static_cast<std::size_t>(v)];
    return n >= 0 && !node(n).clamp && node(n).outputs.size() == 1 ? n : -1;
  }
  Node &node(std::int32_t n) const { return g_.nodes[static_cast<std::size_t>(n)]; }

  /// The number of columns of a product of rows by constants; -1: the node is no such product.
  std::int64_t columns(const Node &node) const {
    const Tensor *weight = is_linear(node) && !is_convolution(node) ? float_constant(g_, input_of(node, 1)) : nullptr;
    return weight && weight->rank() == 2 ? output_channels(node, weight->shape()) : -1;
  }

  /// Whether a constant of this shape has one value for each column, over the last axes of v.
  bool is_of_columns(const Shape &bias, ValueId v, std::int64_t columns) {
    if (shapes_.empty()) shapes_ = shapes_of_batches(g_);
    return std::ranges::all_of(shapes_,
                               [&](const KnownShapes &shapes) { return is_of_columns(bias, shapes.of(v), columns); });
  }

  static bool is_of_columns(const Shape &bias, const Shape *shape, std::int64_t columns) {
    if (!shape || bias.size() > shape->size() || element_count(bias) != columns) return false;
    std::int64_t left = columns;
    for (std::size_t i = 1; i <= bias.size() && left > 1; ++i) {
      const std::int64_t dim = bias[bias.size() - i];
      if (dim != (*shape)[shape->size() - i]) return false;
      left /= dim;
    }
    return left == 1;
  }

  /// The Add takes the place behind the product, and the nodes in between that of the Add.
  bool bring(std::size_t n, std::size_t i) {
    const ValueId constant = g_.nodes[n].inputs[i], v = g_.nodes[n].inputs[1 - i];
    const Tensor *bias = float_constant(g_, constant);
    std::int32_t last = bias && !g_.nodes[n].clamp && g_.nodes[n].outputs.size() == 1 ? maker(v) : -1, first = -1;
    std::int32_t before = last;
    for (; before >= 0 && divides(node(before)); before = maker(node(before).inputs[0])) first = before;
    if (before < 0 || first < 0 || columns(node(before)) < 2 || !is_of_columns(bias->shape(), v, columns(node(before))))
      return false;
    const std::string name = g_.value(constant).name;
    const ValueId row = g_.add_constant(name + "_row", bias->to_contiguous().reshaped(Shape{bias->count()}));
    Value biased = g_.value(node(before).outputs[0]);
    biased.name = g_.names.make(g_.values, biased.name + "_biased");
    const ValueId sum = g_.add_value(std::move(biased));
    Node &add = g_.nodes[n];
    node(last).outputs[0] = add.outputs[0];
    node(first).inputs[0] = sum;
    add.inputs = {node(before).outputs[0], row};
    add.outputs[0] = sum;
    return true;
  }

  Graph &g_;
  const Facts facts_;
  std::vector<KnownShapes> shapes_;  ///< once they are asked for
};

}  // namespace

void bring_biases_to_products(Graph &g) {
  const auto adds = [](const Node &node) { return node.op == &ops::kAdd; };
  if (std::ranges::any_of(g.nodes, divides) && std::ranges::any_of(g.nodes, adds)) Biases(g).run();
}

}  // namespace qtn::graph
