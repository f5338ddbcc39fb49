// SPDX-License-Identifier: Apache-2.0
// Products of a float x, on the grid that it gets from its own values, in ONNX's own operators.
#pragma once

#include <map>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Says for DynamicQuantizeLinear or DynamicQuantizeMatMul whose grid x gets.
void set_numerics(Node &node, Numerics numerics);

/// Appends nodes to a graph: DynamicQuantizeLinear of x, ConvInteger or MatMulInteger, and their sums as floats,
/// `float(sums) * (scale of x * scales) + bias`, which is what DynamicQuantizeMatMul computes, bit for bit.
class DynamicProducts {
 public:
  explicit DynamicProducts(Graph &g) : g_(g) {}

  struct Constants {
    ValueId weight, scales;
    ValueId zero = kNoValue, bias = kNoValue;  ///< shaped so that they broadcast over the product
    Numerics numerics = Numerics::onnx;        ///< of the grid of x
  };
  /// In the place of `node`, whose first input is x and whose clamp the result gets.
  void add(const Node &node, const ops::OpDef &product, const Constants &constants);

 private:
  /// The outputs of DynamicQuantizeLinear.
  struct Grid {
    ValueId q, scale, zero;
  };
  Grid grid_of(ValueId x, Numerics numerics, const std::string &name);
  ValueId add_value(const std::string &name, qdtype dtype);
  void add_node(const ops::OpDef &op, const std::string &name, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs);

  Graph &g_;
  std::map<std::pair<ValueId, Numerics>, Grid> grids_;  // one for all products that read x
};

}  // namespace qtn::graph
