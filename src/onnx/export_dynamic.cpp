// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "graph/channel_constants.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "onnx/dynamic_products.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::onnx {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Value;
using graph::ValueId;

class Exporting {
 public:
  explicit Exporting(Graph &g) : g_(g) {}

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes)
      if (graph::integer_form(g_, node) == graph::IntegerForm::dynamic)
        replace(node);
      else
        g_.nodes.push_back(std::move(node));
  }

 private:
  void replace(const Node &node) {
    const bool convolves = node.op == &ops::kDynamicQuantizeConv;
    const ops::OpDef &product = convolves ? ops::kConvInteger : ops::kMatMulInteger;
    const ops::OwnGrid own = ops::own_grid(node.op->name, node.attrs);
    const Grid x = grid_of(node.inputs[0], own, node.name);
    const bool rows = own.granularity == ops::Granularity::row;
    const ValueId zero = graph::input_of(node, 3);
    const ValueId bias = graph::broadcast_of_channels(g_, node, graph::input_of(node, 4));
    const ValueId sums = add_value(node.name + "_sums", QTN_INT32), real = add_value(node.name + "_real", QTN_FLOAT32);
    const ValueId scales = add_value(node.name + "_scales", QTN_FLOAT32), y = node.outputs[0];
    const ValueId scaled = bias == kNoValue ? y : add_value(node.name + "_scaled", QTN_FLOAT32);
    std::vector<ValueId> operands{x.q, node.inputs[1], rows ? kNoValue : x.zero, zero};
    while (operands.back() == kNoValue) operands.pop_back();
    add_node(product, node.name, std::move(operands), {sums});
    if (convolves) {
      g_.nodes.back().attrs = node.attrs;
      g_.nodes.back().attrs.erase(ops::kNumericsAttr);
    }
    const ValueId centered = rows ? less_zero_points(node, x, sums) : sums;
    add_node(ops::kCast, node.name + "_cast", {centered}, {real});
    g_.nodes.back().attrs.set("to", std::int64_t{QTN_FLOAT32});
    const ValueId of_weights = graph::broadcast_of_channels(g_, node, node.inputs[2]);
    add_node(ops::kMul, node.name + "_scales", {x.scale, of_weights}, {scales});
    add_node(ops::kMul, node.name + "_scale", {real, scales}, {scaled});
    if (bias != kNoValue) add_node(ops::kAdd, node.name + "_bias", {scaled, bias}, {y});
    g_.nodes.back().clamp = node.clamp;
  }

  /// The outputs of DynamicQuantizeLinear.
  struct Grid {
    ValueId q, scale, zero;
  };
  Grid grid_of(ValueId x, const ops::OwnGrid &grid, const std::string &name) {
    const auto [at, is_new] = grids_.try_emplace({x, grid});
    if (is_new) {
      at->second = {add_value(name + "_x_quantized", QTN_UINT8), add_value(name + "_x_scale", QTN_FLOAT32),
                    add_value(name + "_x_zero_point", QTN_UINT8)};
      const auto &[q, scale, zero] = at->second;
      add_node(ops::kDynamicQuantizeLinear, name + "_quantize", {x}, {q, scale, zero});
      ops::set_own_grid(g_.nodes.back().attrs, grid);
    }
    return at->second;
  }

  ValueId less_zero_points(const Node &node, const Grid &x, ValueId sums) {
    const ValueId zeros = add_value(node.name + "_zero_points", QTN_INT32);
    const ValueId moved = add_value(node.name + "_moved", QTN_INT32);
    const ValueId centered = add_value(node.name + "_centered", QTN_INT32);
    add_node(ops::kCast, node.name + "_zero_points", {x.zero}, {zeros});
    g_.nodes.back().attrs.set("to", std::int64_t{QTN_INT32});
    add_node(ops::kMul, node.name + "_moved", {zeros, column_sums(node)}, {moved});
    add_node(ops::kSub, node.name + "_centered", {sums, moved}, {centered});
    return centered;
  }

  ValueId column_sums(const Node &node) {
    const ValueId zero = graph::input_of(node, 3);
    return g_.add_constant(
        node.name + "_column_sums",
        column_sums_of(g_.value(node.inputs[1]).constant, zero == kNoValue ? Tensor() : g_.value(zero).constant));
  }

  ValueId add_value(const std::string &name, qdtype dtype) {
    Value value;
    value.name = name;
    value.dtype = dtype;
    return g_.add_value(std::move(value));
  }

  void add_node(const ops::OpDef &op, const std::string &name, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs) {
    g_.nodes.push_back({name, &op, {}, std::move(inputs), std::move(outputs), {}});
  }

  Graph &g_;
  std::map<std::pair<ValueId, ops::OwnGrid>, Grid> grids_;  // one for all products that read x
};

}  // namespace

Tensor column_sums_of(const Tensor &weight, const Tensor &zero) {
  const std::int64_t depth = weight.dim(0), columns = weight.dim(1);
  const std::vector<std::int64_t> zeros =
      zero.has_data() ? int_values(zero, "zero point") : std::vector<std::int64_t>{0};
  std::vector<std::int64_t> of_column(static_cast<std::size_t>(columns));
  for (std::size_t c = 0; c < of_column.size(); ++c) of_column[c] = -depth * zeros[zeros.size() == 1 ? 0 : c];
  const Tensor plain = weight.to_contiguous();
  const auto add = [&](const auto *w) {
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t &sum : of_column) sum += *w++;
  };
  plain.dtype() == QTN_INT8 ? add(plain.as<const std::int8_t>()) : add(plain.as<const std::uint8_t>());
  Tensor sums(QTN_INT32, {columns});
  std::transform(of_column.begin(), of_column.end(), sums.as<std::int32_t>(),
                 [](std::int64_t sum) { return static_cast<std::int32_t>(sum); });
  return sums;
}

void export_dynamic(Graph &g) { Exporting(g).run(); }

}  // namespace qtn::onnx
