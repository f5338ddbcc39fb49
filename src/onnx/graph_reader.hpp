// SPDX-License-Identifier: Apache-2.0
// A GraphProto as a graph: a model's, or one that a node of control flow runs.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/graph.hpp"
#include "graph/unique_names.hpp"
#include "onnx/messages.hpp"

namespace qtn::onnx {

/// What the graphs of a file share.
struct FileContext {
  DataFolder folder;
  std::int64_t opset;                 ///< of ONNX's own operators
  Opsets imports;                     ///< of all domains
  std::set<std::int32_t> kept_types;  ///< named_types() of the model
  graph::UniqueNames node_names;
  std::map<std::string, std::vector<std::string>> unsupported;  ///< operators, and the nodes that call them
  std::map<std::string, std::int64_t> opsets;                   ///< Graph::opsets
  /// By the place that the file has them in. Functions and loops repeat their graphs, which then share them.
  std::unordered_map<const void *, Tensor> tensors;
};

/// Whether a node calls an operator of this library.
bool is_known(const NodeProto &node);

class GraphReader {
 public:
  /// `outer`: whose values the graph sees, or nullptr.
  GraphReader(FileContext &file, GraphReader *outer) : file_(file), outer_(outer) {}

  /// A sorted graph, whose quantizers are still nodes. What it reads of outer graphs are inputs behind its own. Operators
  /// that are not known are counted, and their nodes left out: the graph is of no use then.
  graph::Graph read(const GraphProto &proto);

  /// The outer values that the last inputs stand for.
  const std::vector<graph::ValueId> &captured() const { return captured_; }

  graph::UniqueNames &value_names() { return value_names_; }

 private:
  /// The value of that name, of this graph or of one around it.
  graph::ValueId value_named(const std::string &name);
  graph::ValueId own_value(const std::string &name);
  graph::ValueId capture(const std::string &name);
  graph::ValueId define(const std::string &name);
  void set_constant(graph::ValueId id, Tensor tensor);
  Tensor kept(Tensor tensor) const;
  Attr value_of(const AttributeProto &attribute);
  void reserve_names(const GraphProto &proto);
  void add_initializer(protozero::data_view bytes);
  void add_input(const ValueInfo &input);
  void describe(const ValueInfo &info);
  void add_output(const ValueInfo &output);
  std::int64_t version_of(const NodeProto &proto, std::int64_t opset) const;
  std::string node_name(const NodeProto &proto, std::size_t index);
  void add_node(const NodeProto &proto, std::size_t index);
  void set_attributes(const NodeProto &proto, graph::Node &node);
  void add_bodies(const NodeProto &proto, graph::Node &node);
  void connect(const NodeProto &proto, graph::Node &node);
  void upgrade(std::string &op, graph::Node &node, std::int64_t opset);
  void check_nodes();

  FileContext &file_;
  GraphReader *outer_;
  graph::Graph g_;
  std::unordered_map<std::string, graph::ValueId> ids_;
  std::vector<bool> defined_;                        ///< by value id: an input, a constant, or the output of a node
  std::unordered_set<std::string> own_;              ///< names that this graph makes, where it has an outer one
  std::unordered_set<std::string> kept_;             ///< what registered operators read, whose types stay as they are
  std::vector<graph::ValueId> captured_, captures_;  ///< values of the outer graph, and what stands for them here
  graph::UniqueNames value_names_;
  std::vector<bool> own_name_;  ///< by node: its name is not empty and the first of that kind
};

}  // namespace qtn::onnx
