// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "graph/facts.hpp"
#include "graph/known_shapes.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

using Letters = std::string;  // '.' stands for the ellipsis

/// a and b as MatMul takes them, or with their last two axes exchanged.
struct Product {
  bool a_transposed = false, b_transposed = false;
};

Letters kept(const Letters &from, const std::function<bool(char)> &keep) {
  Letters found;
  std::ranges::copy_if(from, std::back_inserter(found), keep);
  return found;
}

bool has(const Letters &letters, char letter) { return letters.find(letter) != letters.npos; }

/// The three terms of "a,b->c", each without a letter that comes twice.
std::optional<std::array<Letters, 3>> terms_of(std::string equation) {
  std::erase(equation, ' ');
  for (std::size_t at; (at = equation.find("...")) != equation.npos;) equation.replace(at, 3, ".");
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == equation.npos || arrow == equation.npos || comma > arrow) return std::nullopt;
  std::array<Letters, 3> terms{equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1),
                               equation.substr(arrow + 2)};
  for (const Letters &term : terms)
    for (std::size_t i = 0; i < term.size(); ++i)
      if (term[i] == ',' || term.find(term[i], i + 1) != term.npos) return std::nullopt;
  return terms;
}

/// [batch ..., i, j] times [batch ..., j, k], or times the matrix [j, k], in either order of the last two axes.
std::optional<Product> product_of(const std::string &equation) {
  const auto terms = terms_of(equation);
  if (!terms) return std::nullopt;
  const auto &[a, b, c] = *terms;
  const Letters batch = kept(a, [&](char l) { return has(b, l) && has(c, l); });
  const Letters summed = kept(a, [&](char l) { return has(b, l) && !has(c, l); });
  const Letters rows = kept(a, [&](char l) { return !has(b, l) && has(c, l); });
  const Letters columns = kept(b, [&](char l) { return !has(a, l) && has(c, l); });
  if (summed.size() != 1 || columns.size() != 1 || has(summed + columns, '.')) return std::nullopt;
  if (c != batch + rows + columns) return std::nullopt;
  Product product;
  if (b == batch + columns + summed)
    product.b_transposed = true;
  else if (b != batch + summed + columns)
    return std::nullopt;
  if (a == batch + rows + summed) return batch.empty() || rows.size() == 1 ? std::optional(product) : std::nullopt;
  product.a_transposed = true;
  return rows.size() == 1 && rows != "." && a == batch + summed + rows ? std::optional(product) : std::nullopt;
}

class EinsumProducts {
 public:
  explicit EinsumProducts(Graph &g) : g_(g), facts_(g), shapes_(g) {}

  void run() {
    for (Node &node : g_.nodes) {
      if (node.op == &ops::kEinsum && node.inputs.size() == 2 && !node.clamp) rewrite(node);
      nodes_.push_back(std::move(node));
    }
    g_.nodes = std::move(nodes_);
  }

 private:
  void rewrite(Node &node) {
    const auto product = product_of(node.attrs.get_string("equation", ""));
    if (!product || !is_plain(node.inputs[0]) || !is_plain(node.inputs[1]) || !is_plain(node.outputs[0])) return;
    const Shape *a = shapes_.of(node.inputs[0]), *b = shapes_.of(node.inputs[1]);
    if (!a || !b || a->size() < 2 || b->size() < 2) return;
    // Einsum repeats an axis of length 1, MatMul refuses it.
    if (depth(*a, product->a_transposed ? 2 : 1) != depth(*b, product->b_transposed ? 1 : 2)) return;
    if (product->a_transposed) node.inputs[0] = transposed(node.inputs[0], a->size());
    if (product->b_transposed) node.inputs[1] = transposed(node.inputs[1], b->size());
    node.op = &ops::kMatMul;
    node.attrs = Attrs();
  }

  /// Floats without a grid, on which Einsum and MatMul mean the same.
  bool is_plain(ValueId v) const { return v != kNoValue && facts_.is_float(v) && !g_.value(v).quantizer; }

  static std::int64_t depth(const Shape &shape, std::size_t from_end) { return shape[shape.size() - from_end]; }

  ValueId transposed(ValueId x, std::size_t rank) {
    const std::string name = g_.value(x).name + "_transposed";
    std::vector<std::int32_t> order(rank);
    for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int32_t>(i);
    std::swap(order[rank - 1], order[rank - 2]);
    if (g_.value(x).is_constant()) {
      const ValueId made = g_.add_constant(name, g_.value(x).constant.permute(order).to_contiguous());
      g_.value(made).origin = original_name(g_.value(x));
      return made;
    }
    Value value;
    value.name = name;
    value.dtype = QTN_FLOAT32;
    const ValueId made = g_.add_value(std::move(value));
    Attrs attrs;
    attrs.set("perm", std::vector<std::int64_t>(order.begin(), order.end()));
    nodes_.push_back({name, &ops::kTranspose, std::move(attrs), {x}, {made}, {}});
    return made;
  }

  Graph &g_;
  const Facts facts_;
  const KnownShapes shapes_;
  std::vector<Node> nodes_;
};

}  // namespace

void make_products_of_einsums(Graph &g) {
  if (std::ranges::any_of(g.nodes, [](const Node &node) { return node.op == &ops::kEinsum; })) EinsumProducts(g).run();
}

}  // namespace qtn::graph
