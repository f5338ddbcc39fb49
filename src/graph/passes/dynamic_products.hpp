// SPDX-License-Identifier: Apache-2.0
// Products of a float x, on the grid that it gets from its own values, in ONNX's own operators.
#pragma once

#include <map>

#include "graph/graph.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::graph {

/// int32 [columns] of weights [depth][columns] of 8 bits less their zero points (one, one for each column, or no data).
Tensor column_sums_of(const Tensor &weight, const Tensor &zero);

/// Appends nodes to a graph: DynamicQuantizeLinear of x, ConvInteger or MatMulInteger, and their sums as floats,
/// `float(sums) * (scale of x * scales) + bias`, which is what DynamicQuantizeMatMul computes, bit for bit. Runtimes
/// know no MatMulInteger by one zero point for each row: there, `zero_point of x * sums of columns` is taken off sums.
class DynamicProducts {
 public:
  explicit DynamicProducts(Graph &g) : g_(g) {}

  struct Constants {
    ValueId weight, scales;
    ValueId zero = kNoValue, bias = kNoValue;  ///< shaped so that they broadcast over the product
    ops::OwnGrid grid{};                       ///< of x; one for each row only for MatMulInteger
  };
  /// In the place of `node`, whose first input is x and whose clamp the result gets.
  void add(const Node &node, const ops::OpDef &product, const Constants &constants);

 private:
  /// The outputs of DynamicQuantizeLinear.
  struct Grid {
    ValueId q, scale, zero;
  };
  Grid grid_of(ValueId x, const ops::OwnGrid &grid, const std::string &name);
  ValueId column_sums(const Constants &constants, const std::string &name);
  ValueId add_value(const std::string &name, qdtype dtype);
  void add_node(const ops::OpDef &op, const std::string &name, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs);

  Graph &g_;
  std::map<std::pair<ValueId, ops::OwnGrid>, Grid> grids_;  // one for all products that read x
};

}  // namespace qtn::graph
