// SPDX-License-Identifier: Apache-2.0
#include "graph/dynamic.hpp"

#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::graph {

void set_numerics(Node &node, Numerics numerics) {
  if (numerics != Numerics::onnx) node.attrs.set(ops::kNumericsAttr, numerics_name(numerics));
}

void DynamicProducts::add(const Node &node, const ops::OpDef &product, const Constants &constants) {
  const Grid x = grid_of(node.inputs[0], constants.numerics, node.name);
  const ValueId sums = add_value(node.name + "_sums", QTN_INT32), real = add_value(node.name + "_real", QTN_FLOAT32);
  const ValueId scales = add_value(node.name + "_scales", QTN_FLOAT32), y = node.outputs[0];
  const ValueId scaled = constants.bias == kNoValue ? y : add_value(node.name + "_scaled", QTN_FLOAT32);
  std::vector<ValueId> operands{x.q, constants.weight, x.zero};
  if (constants.zero != kNoValue) operands.push_back(constants.zero);
  add_node(product, node.name, std::move(operands), {sums});
  if (&product == &ops::kConvInteger) g_.nodes.back().attrs = node.attrs;
  add_node(ops::kCast, node.name + "_cast", {sums}, {real});
  g_.nodes.back().attrs.set("to", std::int64_t{QTN_FLOAT32});
  add_node(ops::kMul, node.name + "_scales", {x.scale, constants.scales}, {scales});
  add_node(ops::kMul, node.name + "_scale", {real, scales}, {scaled});
  if (constants.bias != kNoValue) add_node(ops::kAdd, node.name + "_bias", {scaled, constants.bias}, {y});
  g_.nodes.back().clamp = node.clamp;
}

DynamicProducts::Grid DynamicProducts::grid_of(ValueId x, Numerics numerics, const std::string &name) {
  const auto [at, is_new] = grids_.try_emplace({x, numerics});
  if (is_new) {
    at->second = {add_value(name + "_x_quantized", QTN_UINT8), add_value(name + "_x_scale", QTN_FLOAT32),
                  add_value(name + "_x_zero_point", QTN_UINT8)};
    const auto &[q, scale, zero] = at->second;
    add_node(ops::kDynamicQuantizeLinear, name + "_quantize", {x}, {q, scale, zero});
    set_numerics(g_.nodes.back(), numerics);
  }
  return at->second;
}

ValueId DynamicProducts::add_value(const std::string &name, qdtype dtype) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  return g_.add_value(std::move(value));
}

void DynamicProducts::add_node(const ops::OpDef &op, const std::string &name, std::vector<ValueId> inputs,
                               std::vector<ValueId> outputs) {
  g_.nodes.push_back({name, &op, {}, std::move(inputs), std::move(outputs), {}});
}

}  // namespace qtn::graph
