// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

/// `count` values: those of t times factor, or its one value repeated.
Tensor scaled_vector(const Tensor &t, float factor, std::int64_t count) {
  const Tensor flat = t.to_contiguous();
  Tensor scaled(QTN_FLOAT32, Shape{count});
  for (std::int64_t i = 0; i < count; ++i)
    scaled.as<float>()[i] = flat.as<const float>()[t.count() == 1 ? 0 : i] * factor;
  return scaled;
}

/// Whether adding t to a matrix of that many columns adds one value to each column.
bool is_row(const Tensor &t, std::int64_t columns) {
  if (t.rank() == 0 || t.count() == 1) return t.count() == 1;
  return t.rank() <= 2 && t.shape().back() == columns && t.count() == columns;
}

void fold_factors(Graph &g, Node &node) {
  const Tensor *weight = float_constant(g, input_of(node, 1));
  if (!weight || weight->rank() != 2) return;
  const auto alpha = static_cast<float>(node.attrs.get_float("alpha", 1.0));
  const auto beta = static_cast<float>(node.attrs.get_float("beta", 1.0));
  const std::int64_t columns = weight->dim(node.attrs.get_int("transB", 0) != 0 ? 0 : 1);
  const Shape shape = weight->shape();
  const ValueId bias_id = input_of(node, 2);
  const Tensor *bias = float_constant(g, bias_id);
  if (bias_id != kNoValue && (!bias || !is_row(*bias, columns))) return;
  const bool plain_bias = !bias || (beta == 1.0f && bias->rank() == 1 && bias->count() == columns);
  // add_constant moves values, and with them the tensors pointed to.
  const Tensor old_bias = bias ? *bias : Tensor();
  if (alpha != 1.0f) {
    const Tensor scaled = scaled_vector(*weight, alpha, weight->count()).reshaped(shape);
    const std::string name = g.value(node.inputs[1]).name;
    node.inputs[1] = g.add_constant(name + "_scaled", scaled);
    node.attrs.erase("alpha");
  }
  if (!plain_bias) {
    const std::string name = g.value(bias_id).name;
    node.inputs[2] = g.add_constant(name + "_row", scaled_vector(old_bias, beta, columns));
  }
  node.attrs.erase("beta");
}

/// MatMul `first` and Add `second` as one Gemm in the place of `second`.
bool join_bias(Graph &g, const Facts &facts, Node &first, Node &second) {
  const Tensor *weight = float_constant(g, input_of(first, 1));
  if (first.clamp || !weight || weight->rank() != 2 || facts.rank_of(first.inputs[0]) != 2) return false;
  if (!is_activation(g, facts, first.inputs[0]) || !facts.uses.single_use(first.outputs[0])) return false;
  const std::size_t other = second.inputs[0] == first.outputs[0] ? 1 : 0;
  const Tensor *bias = float_constant(g, second.inputs[other]);
  const std::int64_t columns = weight->dim(1);
  if (!bias || bias->rank() > 2 || !is_row(*bias, columns)) return false;
  const Tensor row = scaled_vector(*bias, 1.0f, columns);
  const std::string name = g.value(second.inputs[other]).name;
  const ValueId row_id = g.add_constant(name + "_row", row);
  second.op = ops::find_op("Gemm");
  second.attrs = Attrs();
  second.name = first.name;
  second.inputs = {first.inputs[0], first.inputs[1], row_id};
  return true;
}

/// Whether a node normalizes signals, images or volumes by constants.
bool is_norm(const Graph &g, const Facts &facts, const Node &node) {
  if (node.op != &ops::kBatchNormalization) return false;
  const std::int64_t rank = facts.rank_of(node.inputs[0]);
  return rank >= 3 && rank <= 5 &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId v) { return float_constant(g, v); });
}

/// Whether fold_batch_norms() folds a normalization of x into what makes x.
bool takes_up(const Graph &g, const Facts &facts, ValueId x) {
  const std::int32_t maker = facts.uses.producer[static_cast<std::size_t>(x)];
  if (maker < 0 || !facts.uses.single_use(x)) return false;
  const ops::ProductForm *product = g.nodes[static_cast<std::size_t>(maker)].op->product;
  return product && product->has_bias;
}

}  // namespace

std::vector<std::string> insert_depthwise_before_norms(Graph &g) {
  const Facts facts(g);
  std::vector<std::string> names;
  std::vector<Node> nodes;
  for (Node &node : g.nodes) {
    if (is_norm(g, facts, node) && !takes_up(g, facts, node.inputs[0])) {
      const ValueId x = node.inputs[0];
      const std::int64_t channels = g.value(node.inputs[1]).constant.count();
      Shape shape{channels};
      for (std::int64_t i = 1; i < facts.rank_of(x); ++i) shape.push_back(1);
      const Tensor ones(QTN_FLOAT32, shape);
      std::fill_n(ones.as<float>(), channels, 1.0f);
      Value same;
      same.name = node.name + "_input";
      same.dtype = QTN_FLOAT32;
      same.shape = g.value(x).shape;
      Attrs attrs;
      attrs.set("group", channels);
      const ValueId ones_id = g.add_constant(node.name + "_ones", ones);
      g.value(ones_id).origin = original_name(g.value(node.inputs[1]));  // which will be multiplied into it
      nodes.push_back({node.name, &ops::kConv, attrs, {x, ones_id}, {g.add_value(std::move(same))}, {}});
      names.push_back(node.name);
      node.name += "_norm";
      node.inputs[0] = nodes.back().outputs[0];
    }
    nodes.push_back(std::move(node));
  }
  g.nodes = std::move(nodes);
  return names;
}

void normalize_products(Graph &g) {
  const Facts facts(g);
  std::vector<bool> gone(g.nodes.size(), false);
  for (Node &node : g.nodes) {
    if (std::string_view(node.op->name) != "Add") continue;
    for (const ValueId v : {node.inputs[0], node.inputs[1]}) {
      const std::int32_t maker = v == kNoValue ? -1 : facts.uses.producer[static_cast<std::size_t>(v)];
      if (maker < 0) continue;
      Node &before = g.nodes[static_cast<std::size_t>(maker)];
      if (std::string_view(before.op->name) != "MatMul" || !join_bias(g, facts, before, node)) continue;
      gone[static_cast<std::size_t>(maker)] = true;
      break;
    }
  }
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return gone[n++]; });
  for (Node &node : g.nodes)
    if (std::string_view(node.op->name) == "Gemm") fold_factors(g, node);
  remove_dead(g);
}

}  // namespace qtn::graph
