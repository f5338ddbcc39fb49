// SPDX-License-Identifier: Apache-2.0
// Normalizations of the columns of a product, which PyTorch's exporter leaves apart from it.
#include <algorithm>
#include <optional>

#include "graph/facts.hpp"
#include "graph/passes/affine.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

bool is(const Node &node, std::string_view op) { return node.op->name == op; }

/// Whether a node makes a matrix of so many columns of what has as many, and moves nothing.
bool makes_matrix(const Graph &g, const Facts &facts, const Node &node, std::int64_t columns) {
  if (node.clamp) return false;
  if (is(node, "Flatten")) {
    const std::int64_t axis = node.attrs.get_int("axis", 1), rank = facts.rank_of(node.inputs[0]);
    return axis == -1 || (rank > 0 && axis == rank - 1);
  }
  if (!is(node, "Reshape") || !g.value(node.inputs[1]).is_constant()) return false;
  const std::vector<std::int64_t> shape = int_values(g.value(node.inputs[1]).constant, "Reshape");
  return shape.size() == 2 && shape[1] == columns;
}

/// What comes to a normalization of columns: a product with constants, perhaps an addition of a constant to each
/// column, perhaps nodes that make a matrix of it.
struct Columns {
  std::size_t product = 0;
  std::optional<std::size_t> addition, last_move;
  std::size_t row = 0;  ///< which input of the addition is the constant
};

class ColumnsOf {
 public:
  ColumnsOf(const Graph &g, const Facts &facts, std::int64_t columns) : g_(g), facts_(facts), columns_(columns) {}

  std::optional<Columns> find(ValueId x) const {
    Columns found;
    bool matrix = facts_.rank_of(x) == 2;
    std::optional<std::size_t> maker = only_maker(x);
    for (; maker && makes_matrix(g_, facts_, g_.nodes[*maker], columns_); maker = only_maker(x)) {
      if (!found.last_move) found.last_move = maker;
      matrix = true;
      x = g_.nodes[*maker].inputs[0];
    }
    if (maker && g_.nodes[*maker].op == &ops::kAdd && !g_.nodes[*maker].clamp) {
      const Node &add = g_.nodes[*maker];
      found.row = is_row(add.inputs[0]) ? 0 : 1;
      if (!is_row(add.inputs[found.row])) return std::nullopt;
      found.addition = maker;
      maker = only_maker(add.inputs[1 - found.row]);
    }
    if (!matrix || !maker || !is_product(g_.nodes[*maker])) return std::nullopt;
    found.product = *maker;
    return found;
  }

 private:
  /// What makes a value of which one node reads elements, and any others the shape.
  std::optional<std::size_t> only_maker(ValueId x) const {
    const auto v = static_cast<std::size_t>(x);
    const std::vector<std::int32_t> &readers = facts_.uses.consumers[v];
    const auto of_elements = std::count_if(readers.begin(), readers.end(), [&](std::int32_t n) {
      return !g_.nodes[static_cast<std::size_t>(n)].op->reads_shapes;
    });
    if (facts_.uses.producer[v] < 0 || of_elements != 1 || facts_.uses.is_output[v] || g_.value(x).quantizer)
      return std::nullopt;
    return static_cast<std::size_t>(facts_.uses.producer[v]);
  }

  bool is_row(ValueId v) const {
    const Tensor *t = float_constant(g_, v);
    return t && t->rank() == 1 && t->count() == columns_;
  }

  bool is_product(const Node &node) const {
    if (!is(node, "MatMul") || node.clamp || g_.value(node.inputs[0]).is_constant()) return false;
    const Tensor *weight = float_constant(g_, node.inputs[1]);
    return weight && weight->rank() == 2 && weight->dim(1) == columns_;
  }

  const Graph &g_;
  const Facts &facts_;
  const std::int64_t columns_;
};

/// The factors go into the weights, the offsets into an addition behind the product.
void take_up(Graph &g, const Uses &uses, const Columns &found, const Node &norm, const Affine &a) {
  const auto columns = a.factor.size();
  const ValueId old_weight = g.nodes[found.product].inputs[1];
  Tensor weight = g.value(old_weight).constant.clone();
  for (std::size_t i = 0; i < static_cast<std::size_t>(weight.count()); ++i)
    weight.as<float>()[i] *= a.factor[i % columns];
  std::vector<float> row = a.offset;
  if (found.addition) {
    const std::vector<float> bias = float_values(g.value(g.nodes[*found.addition].inputs[found.row]).constant, "bias");
    for (std::size_t c = 0; c < columns; ++c) row[c] += bias[c] * a.factor[c];
  }
  const std::string base = g.nodes[found.product].name;
  const ValueId weight_id = g.add_constant(base + "_weight_folded", std::move(weight));
  g.value(weight_id).origin = original_name(g.value(old_weight));
  const ValueId row_id = g.add_constant(
      base + "_bias_folded",
      Tensor::from<float>(QTN_FLOAT32, Shape{static_cast<std::int64_t>(columns)}, std::span<const float>(row)));
  g.nodes[found.product].inputs[1] = weight_id;
  const std::size_t last = found.addition.value_or(g.nodes.size());  // an addition, which may be new
  if (found.addition) {
    g.nodes[*found.addition].inputs[found.row] = row_id;
  } else {
    const ValueId y = g.nodes[found.product].outputs[0];
    Value scaled;
    scaled.name = norm.name + "_scaled";
    scaled.dtype = QTN_FLOAT32;
    scaled.shape = g.value(y).shape;
    const ValueId scaled_id = g.add_value(std::move(scaled));
    g.nodes[found.product].outputs[0] = scaled_id;
    g.nodes.push_back({norm.name, &ops::kAdd, {}, {scaled_id, row_id}, {y}, {}});
  }
  for (const std::int32_t reader : uses.consumers[static_cast<std::size_t>(norm.inputs[0])])  // of the shape, too
    std::ranges::replace(g.nodes[static_cast<std::size_t>(reader)].inputs, norm.inputs[0], norm.outputs[0]);
  g.nodes[found.last_move.value_or(last)].outputs[0] = norm.outputs[0];
}

}  // namespace

void fold_norms_of_columns(Graph &g) {
  const auto is_norm = [&](const Node &node) {
    return is(node, "BatchNormalization") && node.outputs.size() == 1 && !node.clamp && constant_parameters(g, node);
  };
  if (std::none_of(g.nodes.begin(), g.nodes.end(), is_norm)) return;
  const Facts facts(g);
  std::vector<bool> gone(g.nodes.size(), false);
  for (std::size_t n = 0; n < gone.size(); ++n) {
    const Node node = g.nodes[n];
    if (!is_norm(node)) continue;
    const Affine a = affine_of(g, node);
    const auto found = ColumnsOf(g, facts, static_cast<std::int64_t>(a.factor.size())).find(node.inputs[0]);
    if (!found || a.factor.empty()) continue;
    take_up(g, facts.uses, *found, node, a);
    gone[n] = true;
  }
  gone.resize(g.nodes.size(), false);
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return gone[n++]; });
  sort_topologically(g);
  remove_dead(g);
}

}  // namespace qtn::graph
