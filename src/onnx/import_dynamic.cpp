// SPDX-License-Identifier: Apache-2.0
#include "graph/channel_constants.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/pattern.hpp"
#include "onnx/dynamic_products.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::onnx {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using ops::Granularity;

class Folding {
 public:
  explicit Folding(Graph &g) : g_(g), uses_(g) {}

  void run() {
    // Whatever no other node reads goes with what read it.
    for (Node &node : g_.nodes)
      if (node.op == &ops::kMul && !fold(node, 0)) fold(node, 1);
    graph::remove_dead(g_);
  }

 private:
  const Node *maker(ValueId v, const ops::OpDef &op) const {
    const Node *node = graph::exact_maker_of(g_, uses_, v);
    return node && node->op == &op ? node : nullptr;
  }

  const Node *product_of(ValueId v) const {
    const Node *product = maker(v, ops::kMatMulInteger);
    return product ? product : maker(v, ops::kConvInteger);
  }

  /// What a product makes of x on its own grid.
  struct Sums {
    const Node *product = nullptr, *grid = nullptr;
  };

  Sums sums_of(ValueId v) const {
    const Node *product = product_of(v);
    const Node *grid = product ? maker(product->inputs[0], ops::kDynamicQuantizeLinear) : nullptr;
    if (!grid || grid->outputs.size() != 3 || product->inputs[0] != grid->outputs[0]) return {};
    return {product, grid};
  }

  static bool is_cast(const Node *node, qdtype to) { return node && node->attrs.get_int("to", 0) == to; }

  /// The sums of a product by one zero point, or those from which a zero point for each row is taken off.
  Sums centered_sums(ValueId v) const {
    if (const Sums found = sums_of(v); found.product)
      return granularity(found) == Granularity::tensor && graph::input_of(*found.product, 2) == found.grid->outputs[2]
                 ? found
                 : Sums{};
    const Node *sub = maker(v, ops::kSub), *moved = sub ? maker(sub->inputs[1], ops::kMul) : nullptr;
    const Sums found = moved ? sums_of(sub->inputs[0]) : Sums{};
    if (!found.product || found.product->op != &ops::kMatMulInteger || granularity(found) != Granularity::row ||
        graph::input_of(*found.product, 2) != kNoValue)
      return {};
    for (const std::size_t i : {0, 1}) {
      const Node *zeros = maker(moved->inputs[i], ops::kCast);
      if (is_cast(zeros, QTN_INT32) && zeros->inputs[0] == found.grid->outputs[2] &&
          are_column_sums(moved->inputs[1 - i], *found.product))
        return found;
    }
    return {};
  }

  static Granularity granularity(const Sums &sums) {
    return ops::own_grid(sums.grid->op->name, sums.grid->attrs).granularity;
  }

  static bool is_of_bytes(const Tensor &t) { return t.has_data() && (t.dtype() == QTN_INT8 || t.dtype() == QTN_UINT8); }

  /// Nothing has looked at the file's types yet.
  bool are_column_sums(ValueId v, const Node &product) const {
    const Tensor &given = g_.value(v).constant, &w = g_.value(product.inputs[1]).constant;
    const ValueId zero = graph::input_of(product, 3);
    if (!given.has_data() || given.dtype() != QTN_INT32 || !is_of_bytes(w) || w.rank() != 2 || w.dim(0) < 1)
      return false;
    const Tensor zeros = zero == kNoValue ? Tensor() : g_.value(zero).constant;
    if (zero != kNoValue && (!is_of_bytes(zeros) || (zeros.count() != 1 && zeros.count() != w.dim(1)))) return false;
    const Tensor wanted = column_sums_of(w, zeros);
    return given.shape() == wanted.shape() && int_values(given, "sums") == int_values(wanted, "sums");
  }

  /// Mul of sums, its operand `at`, and of scales.
  bool fold(Node &mul, std::size_t at) {
    const Node *cast = maker(mul.inputs[at], ops::kCast), *scales = maker(mul.inputs[1 - at], ops::kMul);
    if (!is_cast(cast, QTN_FLOAT32) || !scales) return false;
    const auto [product, grid] = centered_sums(cast->inputs[0]);
    if (!product) return false;
    const std::size_t of_x = scales->inputs[0] == grid->outputs[1] ? 0 : 1;
    if (scales->inputs[of_x] != grid->outputs[1]) return false;
    const bool convolves = product->op == &ops::kConvInteger;
    Node folded{product->name,  convolves ? &ops::kDynamicQuantizeConv : &ops::kDynamicQuantizeMatMul,
                product->attrs, {},
                mul.outputs,    mul.clamp};
    ops::set_own_grid(folded.attrs, ops::own_grid(grid->op->name, grid->attrs));
    folded.inputs = {grid->inputs[0], product->inputs[1], scales->inputs[1 - of_x]};
    folded.inputs[2] = graph::operand_of_channels(g_, folded, folded.inputs[2]);
    if (folded.inputs[2] == kNoValue) return false;
    if (const ValueId zero = graph::input_of(*product, 3); zero != kNoValue) folded.inputs.push_back(zero);
    if (graph::integer_form(g_, folded) != graph::IntegerForm::dynamic) return false;
    mul = std::move(folded);
    return true;
  }

  Graph &g_;
  const graph::Uses uses_;
};

}  // namespace

void import_dynamic(Graph &g) { Folding(g).run(); }

}  // namespace qtn::onnx
