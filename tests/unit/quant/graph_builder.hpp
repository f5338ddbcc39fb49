// SPDX-License-Identifier: Apache-2.0
// Graphs by hand: values are named, and made when first named.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/prepare.hpp"
#include "support.hpp"

namespace qtn::test {

class GraphBuilder {
 public:
  GraphBuilder &input(const std::string &name, const Shape &shape, qdtype dtype = QTN_FLOAT32);
  GraphBuilder &constant(const std::string &name, const Tensor &tensor);

  /// "" is an absent input.
  GraphBuilder &node(const std::string &op, const std::string &name, const std::vector<std::string> &inputs,
                     const std::vector<std::string> &outputs, const Attrs &node_attrs = {});

  /// A 1x1 convolution with weights of its own: `out` channels from `in`.
  GraphBuilder &conv(const std::string &name, const std::string &x, const std::string &y, std::int64_t in,
                     std::int64_t out);
  graph::Graph build(const std::vector<std::string> &outputs);

  /// Values from -1 to 1 in no special order.
  static Tensor ramp(const Shape &shape);

 private:
  graph::ValueId id(const std::string &name);

  graph::Graph g_;
  std::map<std::string, graph::ValueId> ids_;
};

using Names = std::set<std::string>;

Names quantized_values(const quant::PreparedModel &p);

Names integer_nodes(const quant::PreparedModel &p);

void expect_names(const Names &got, const Names &want);

/// The value of that name; fails the test where there is none.
const graph::Value &value_named(const graph::Graph &g, const std::string &name);

const graph::Node &node_named(const graph::Graph &g, const std::string &name);

}  // namespace qtn::test
