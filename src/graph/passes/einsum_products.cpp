// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <string>

#include "graph/facts.hpp"
#include "graph/known_shapes.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

using Letters = std::string;  // '.' stands for the ellipsis

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

/// c = a b, where rows are axes of a and c, columns are axes of b and c, and batch are axes of all.
struct Product {
  bool swapped = false;  ///< a is the second operand
  Letters a, b, c;
  Letters batch, rows, summed, columns;
};

std::optional<Product> product_of(const std::string &equation) {
  const auto terms = terms_of(equation);
  if (!terms) return std::nullopt;
  for (const bool swapped : {false, true}) {
    Product p{swapped, (*terms)[swapped ? 1 : 0], (*terms)[swapped ? 0 : 1], (*terms)[2], {}, {}, {}, {}};
    p.batch = kept(p.c, [&](char l) { return has(p.a, l) && has(p.b, l); });
    p.rows = kept(p.c, [&](char l) { return has(p.a, l) && !has(p.b, l); });
    p.columns = kept(p.c, [&](char l) { return !has(p.a, l) && has(p.b, l); });
    p.summed = kept(p.b, [&](char l) { return has(p.a, l) && !has(p.c, l); });
    const auto is_all = [](const Letters &term, std::size_t count) { return term.size() == count; };
    if (p.summed.empty() || p.rows.empty() || p.columns.empty() || has(p.summed + p.columns, '.') ||
        !is_all(p.a, p.batch.size() + p.rows.size() + p.summed.size()) ||
        !is_all(p.b, p.batch.size() + p.summed.size() + p.columns.size()) ||
        !is_all(p.c, p.batch.size() + p.rows.size() + p.columns.size()))
      return std::nullopt;
    // An ellipsis is so many axes that they have to be the first ones.
    if (has(p.batch, '.') && p.batch[0] != '.') return std::nullopt;
    if (has(p.rows, '.') && (p.rows[0] != '.' || !p.batch.empty())) return std::nullopt;
    const Letters of_one = kept(p.c, [&](char l) { return !has(p.batch, l); });
    if (swapped || of_one == p.rows + p.columns) return p;
  }
  return std::nullopt;
}

class EinsumProducts {
 public:
  explicit EinsumProducts(Graph &g) : g_(g), facts_(g), shapes_(shapes_of_batches(g)) {}

  void run() {
    for (Node &node : g_.nodes)
      if (node.op != &ops::kEinsum || node.inputs.size() != 2 || node.clamp || !rewrite(node))
        nodes_.push_back(std::move(node));
    g_.nodes = std::move(nodes_);
  }

 private:
  /// Operands in the order of their axes that MatMul wants, several axes of one kind as one.
  bool rewrite(const Node &node) {
    const auto product = product_of(node.attrs.get_string("equation", ""));
    if (!product || !is_plain(node.inputs[0]) || !is_plain(node.inputs[1]) || !is_plain(node.outputs[0])) return false;
    const Product &p = *product;
    ValueId a = node.inputs[p.swapped ? 1 : 0], b = node.inputs[p.swapped ? 0 : 1];
    const Sizes of_a = sizes(shapes_[0], a, p.a), of_b = sizes(shapes_[0], b, p.b);
    for (const KnownShapes &shapes : shapes_) {
      const Sizes some_a = sizes(shapes, a, p.a), some_b = sizes(shapes, b, p.b);
      if (!some_a.known || !some_b.known || some_a.ellipsis != of_a.ellipsis || some_b.ellipsis != of_b.ellipsis)
        return false;
      // Einsum repeats an axis of length 1, MatMul refuses it.
      if (std::ranges::any_of(p.summed, [&](char l) { return some_a.of(l) != some_b.of(l); })) return false;
    }
    const bool one_row = p.batch.empty() || p.rows.size() == 1, one_column = p.columns.size() == 1,
               one_sum = p.summed.size() == 1;
    // Lengths that the file leaves open are not to be written down.
    if (facts_.open && (!one_row || ((!one_column || !one_sum) && !g_.value(b).is_constant()))) return false;
    if (has(p.a + p.b, '.') && !(one_row && one_column && one_sum)) return false;

    name_ = node.name;
    const auto first = [](std::size_t count) { return Dims(count, 0); };  // as they are
    a = ordered(a, p.a, p.batch + p.rows + p.summed, of_a.ellipsis);
    b = ordered(b, p.b, p.batch + p.summed + p.columns, of_b.ellipsis);
    if (!one_row || !one_sum) {
      Dims dims = first(p.batch.size());
      if (one_row)
        dims.resize(dims.size() + p.rows.size(), 0);
      else
        dims.push_back(of_a.product(p.rows));
      dims.push_back(of_b.product(p.summed));
      a = reshaped(a, dims);
    }
    if (!one_column || !one_sum) {
      Dims dims = first(p.batch.size());
      dims.insert(dims.end(), {of_b.product(p.summed), of_b.product(p.columns)});
      b = reshaped(b, dims);
    }
    const Letters made = p.batch + p.rows + p.columns;
    const bool reshapes = !one_row || !one_column, reorders = made != p.c;
    ValueId y = reshapes || reorders ? value(name_ + "_product") : node.outputs[0];
    nodes_.push_back({name_, &ops::kMatMul, Attrs(), {a, b}, {y}, {}});
    if (reshapes) {
      Dims dims = first(p.batch.size());
      for (const char l : p.rows) dims.push_back(one_row ? 0 : of_a.of(l));
      for (const char l : p.columns) dims.push_back(of_b.of(l));
      y = reshaped(y, dims, reorders ? graph::kNoValue : node.outputs[0]);
    }
    if (reorders) add_transpose(y, order(made, p.c, std::max(of_a.ellipsis, of_b.ellipsis)), node.outputs[0]);
    return true;
  }

  using Dims = std::vector<std::int64_t>;

  /// The lengths of the axes of a term.
  struct Sizes {
    bool known = false;
    Letters letters = {};
    Shape shape = {};
    std::size_t ellipsis = 0;  ///< axes of it

    std::int64_t of(char letter) const {
      const std::size_t at = letters.find(letter), dot = letters.find('.');
      return shape[dot < at ? at + ellipsis - 1 : at];
    }
    std::int64_t product(const Letters &of_all) const {
      return std::accumulate(of_all.begin(), of_all.end(), std::int64_t{1},
                             [&](std::int64_t n, char l) { return n * of(l); });
    }
  };
  static Sizes sizes(const KnownShapes &shapes, ValueId v, const Letters &term) {
    const Shape *shape = shapes.of(v);
    const bool any = has(term, '.');
    if (!shape || element_count(*shape) == 0 || shape->size() + any < term.size() ||
        (!any && shape->size() != term.size()))
      return {};
    return {true, term, *shape, shape->size() + any - term.size()};
  }

  /// Floats without a grid, on which Einsum and MatMul mean the same.
  bool is_plain(ValueId v) const { return v != kNoValue && facts_.is_float(v) && !g_.value(v).quantizer; }

  /// Where each axis of `to` is in `from`.
  static std::vector<std::int32_t> order(const Letters &from, const Letters &to, std::size_t ellipsis) {
    std::vector<std::int32_t> axes;
    const std::size_t dot = from.find('.');
    for (const char l : to) {
      const std::size_t at = from.find(l);
      for (std::size_t i = 0; i < (l == '.' ? ellipsis : 1); ++i)
        axes.push_back(static_cast<std::int32_t>((dot < at ? at + ellipsis - 1 : at) + i));
    }
    return axes;
  }

  ValueId ordered(ValueId x, const Letters &from, const Letters &to, std::size_t ellipsis) {
    if (from == to) return x;
    const std::vector<std::int32_t> axes = order(from, to, ellipsis);
    const std::string name = g_.value(x).name + "_transposed";
    if (g_.value(x).is_constant()) return constant_like(x, name, g_.value(x).constant.permute(axes).to_contiguous());
    const ValueId made = value(name);
    add_transpose(x, axes, made);
    return made;
  }

  void add_transpose(ValueId x, const std::vector<std::int32_t> &axes, ValueId to) {
    Attrs attrs;
    attrs.set("perm", Dims(axes.begin(), axes.end()));
    nodes_.push_back({g_.value(to).name, &ops::kTranspose, std::move(attrs), {x}, {to}, {}});
  }

  /// 0 stands for the length that the axis has.
  ValueId reshaped(ValueId x, const Dims &dims, ValueId to = kNoValue) {
    const std::string name = g_.value(x).name + "_reshaped";
    if (to == kNoValue && g_.value(x).is_constant()) {
      const Tensor t = g_.value(x).constant.to_contiguous();
      Shape shape;
      for (std::size_t i = 0; i < dims.size(); ++i) shape.push_back(dims[i] ? dims[i] : t.dim(i));
      return constant_like(x, name, t.reshaped(shape));
    }
    if (to == kNoValue) to = value(name);
    const ValueId shape = g_.add_constant(name + "_shape", Tensor::from_ints(dims));
    nodes_.push_back({g_.value(to).name, &ops::kReshape, Attrs(), {x, shape}, {to}, {}});
    return to;
  }

  ValueId constant_like(ValueId x, const std::string &name, const Tensor &t) {
    const std::string origin = original_name(g_.value(x));
    const ValueId made = g_.add_constant(name, t);
    g_.value(made).origin = origin;
    return made;
  }

  ValueId value(const std::string &name) {
    Value made;
    made.name = g_.names.make(g_.values, name);
    made.dtype = QTN_FLOAT32;
    return g_.add_value(std::move(made));
  }

  Graph &g_;
  const Facts facts_;
  const std::vector<KnownShapes> shapes_;
  std::vector<Node> nodes_;
  std::string name_;
};

}  // namespace

void make_products_of_einsums(Graph &g) {
  if (std::ranges::any_of(g.nodes, [](const Node &node) { return node.op == &ops::kEinsum; })) EinsumProducts(g).run();
}

}  // namespace qtn::graph
