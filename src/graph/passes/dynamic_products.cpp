// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/dynamic_products.hpp"

#include <algorithm>

namespace qtn::graph {

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

void DynamicProducts::add(const Node &node, const ops::OpDef &product, const Constants &constants) {
  const bool rows = constants.grid.granularity == ops::Granularity::row;
  const Grid x = grid_of(node.inputs[0], constants.grid, node.name);
  const ValueId sums = add_value(node.name + "_sums", QTN_INT32), real = add_value(node.name + "_real", QTN_FLOAT32);
  const ValueId scales = add_value(node.name + "_scales", QTN_FLOAT32), y = node.outputs[0];
  const ValueId scaled = constants.bias == kNoValue ? y : add_value(node.name + "_scaled", QTN_FLOAT32);
  std::vector<ValueId> operands{x.q, constants.weight, rows ? kNoValue : x.zero};
  if (constants.zero != kNoValue) operands.push_back(constants.zero);
  while (operands.back() == kNoValue) operands.pop_back();
  ValueId centered = sums;
  if (rows) {
    const ValueId zeros = add_value(node.name + "_zero_points", QTN_INT32);
    const ValueId moved = add_value(node.name + "_moved", QTN_INT32);
    centered = add_value(node.name + "_centered", QTN_INT32);
    add_node(product, node.name, std::move(operands), {sums});
    add_node(ops::kCast, node.name + "_zero_points", {x.zero}, {zeros});
    g_.nodes.back().attrs.set("to", std::int64_t{QTN_INT32});
    add_node(ops::kMul, node.name + "_moved", {zeros, column_sums(constants, node.name)}, {moved});
    add_node(ops::kSub, node.name + "_centered", {sums, moved}, {centered});
  } else {
    add_node(product, node.name, std::move(operands), {sums});
    if (&product == &ops::kConvInteger) g_.nodes.back().attrs = node.attrs;
  }
  add_node(ops::kCast, node.name + "_cast", {centered}, {real});
  g_.nodes.back().attrs.set("to", std::int64_t{QTN_FLOAT32});
  add_node(ops::kMul, node.name + "_scales", {x.scale, constants.scales}, {scales});
  add_node(ops::kMul, node.name + "_scale", {real, scales}, {scaled});
  if (constants.bias != kNoValue) add_node(ops::kAdd, node.name + "_bias", {scaled, constants.bias}, {y});
  g_.nodes.back().clamp = node.clamp;
}

DynamicProducts::Grid DynamicProducts::grid_of(ValueId x, const ops::OwnGrid &grid, const std::string &name) {
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

ValueId DynamicProducts::column_sums(const Constants &constants, const std::string &name) {
  const Tensor zero = constants.zero == kNoValue ? Tensor() : g_.value(constants.zero).constant;
  return g_.add_constant(name + "_column_sums", column_sums_of(g_.value(constants.weight).constant, zero));
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
