// SPDX-License-Identifier: Apache-2.0
// Graphs that bytes describe: operators with operands that mostly fit, values read several times, grids between them.
// Each node is run by itself as the graph grows, so that what does not fit is left out, and what it gives is known.
#pragma once

#include "onnx_writer.hpp"

namespace fuzz {

constexpr std::int64_t kMostElements = 1 << 13;

class Growing {
 public:
  /// A graph of at least one node, or none: size() says.
  explicit Growing(Bytes &bytes);

  std::size_t size() const { return graph_.nodes.size(); }

  /// The newest values are outputs, and some others; an input that no node reads is one of the file all the same.
  OnnxGraph &finish();

  /// finish(), as a model; null where there is no node, or the library refuses it.
  Model model();
  const OnnxGraph &graph() const { return graph_; }

  std::vector<Tensor> inputs() const;

  /// Whether all nodes are of these operators, and no float that they read or give is larger than that.
  bool consists_of(std::span<const char *const> ops, float largest) const;

 private:
  struct Refused {};  ///< a node that the library refuses, or that gives too much: the rest of a block is left out

  void add_input();
  void add_node();
  void add_grid();
  void add_block();

  // What exporters write where a network has an attention, a recurrent layer, a table.
  void add_attention();
  void add_recurrent();
  void add_table();

  NamedTensor value(std::size_t at) const { return {names_[at], pool_[at].get()}; }
  /// A value [N, T, F] of floats, newer ones first. Throws Refused where there is none.
  NamedTensor sequence();
  NamedTensor constant(Tensor t);
  NamedTensor weight(const std::vector<std::int64_t> &shape);
  NamedTensor ints(const std::vector<std::int64_t> &values);
  NamedTensor scalar(float value);
  /// Throws Refused.
  std::vector<NamedTensor> nodes(const char *op, const std::vector<NamedTensor> &operands,
                                 const std::vector<Attribute> &attrs, std::size_t output_count);
  NamedTensor node(const char *op, const std::vector<NamedTensor> &operands, const std::vector<Attribute> &attrs = {}) {
    return nodes(op, operands, attrs, 1).front();
  }
  NamedTensor on_grid(const NamedTensor &x);
  /// x, or x on a grid.
  NamedTensor perhaps_on_grid(const NamedTensor &x) { return bytes_.one_in(4) ? on_grid(x) : x; }
  /// x times a weight, and perhaps with a bias.
  NamedTensor projected(const NamedTensor &x, std::int64_t features);

  NamedTensor add(Tensor t);

  Bytes &bytes_;
  OnnxGraph graph_;
  std::size_t first_made_ = 0;  ///< in the pool, behind what was an input from the start
  std::vector<Tensor> pool_, constants_, given_;
  std::vector<std::string> names_;
};

}  // namespace fuzz
