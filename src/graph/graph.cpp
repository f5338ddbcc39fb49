// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/open_inputs.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

template <typename T>
void keep(std::vector<T> &all, const std::vector<bool> &wanted) {
  std::size_t i = 0;
  std::erase_if(all, [&](const T &) { return !wanted[i++]; });
}

std::string label(const Node &node) { return cat("node \"", node.name, "\" (", node.op->name, ")"); }

}  // namespace

Graph::Graph() = default;
Graph::Graph(const Graph &) = default;
Graph::Graph(Graph &&) noexcept = default;
Graph &Graph::operator=(const Graph &) = default;
Graph &Graph::operator=(Graph &&) noexcept = default;
Graph::~Graph() = default;

ValueId Graph::add_value(Value v) {
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size() - 1);
}

ValueId ValueNames::find(const std::vector<Value> &values, const std::string &name) {
  for (; seen_ < values.size(); ++seen_) ids_.try_emplace(values[seen_].name, static_cast<ValueId>(seen_));
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoValue : found->second;
}

std::string ValueNames::make(const std::vector<Value> &values, const std::string &wanted) {
  std::string name = wanted;
  if (find(values, name) == kNoValue) return name;
  for (std::size_t &last = last_[wanted]; find(values, name) != kNoValue;) name = cat(wanted, "_", ++last);
  return name;
}

void ValueNames::forget() {
  seen_ = 0;
  ids_.clear();
  last_.clear();
}

ValueId Graph::add_constant(const std::string &wanted, Tensor tensor) {
  Value v;
  v.name = names.make(values, wanted);
  // Names of what passes make say from what, except for constants that had an origin themselves.
  if (const ValueId source = names.find(values, std::string(without_suffix(wanted))); source != kNoValue)
    v.origin = value(source).origin;
  v.dtype = tensor.quantized() ? QTN_FLOAT32 : tensor.dtype();
  v.shape = tensor.shape();
  v.quantizer = tensor.quantizer();
  v.constant = std::move(tensor);
  return add_value(std::move(v));
}

Uses::Uses(const Graph &g)
    : producer(g.values.size(), -1), consumers(g.values.size()), is_output(g.values.size(), false) {
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    for (const ValueId v : g.nodes[n].inputs)
      if (v != kNoValue) consumers[index(v)].push_back(static_cast<std::int32_t>(n));
    for (const ValueId v : g.nodes[n].outputs)
      if (v != kNoValue) producer[index(v)] = static_cast<std::int32_t>(n);
  }
  for (const ValueId v : g.outputs) is_output[index(v)] = true;
}

void sort_topologically(Graph &g) {
  std::vector<bool> ready(g.values.size(), false);
  for (const ValueId v : g.inputs) ready[index(v)] = true;
  for (std::size_t v = 0; v < g.values.size(); ++v)
    if (g.values[v].is_constant()) ready[v] = true;
  const Uses uses(g);
  std::vector<std::size_t> missing(g.nodes.size(), 0);
  std::deque<std::size_t> queue;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    for (const ValueId v : g.nodes[n].inputs) {
      if (v == kNoValue || ready[index(v)]) continue;
      if (uses.producer[index(v)] < 0)
        fail(QTN_EFORMAT, label(g.nodes[n]), " reads \"", g.value(v).name,
             "\", which no node, input or initializer makes");
      ++missing[n];
    }
    if (missing[n] == 0) queue.push_back(n);
  }
  std::vector<std::size_t> order;
  order.reserve(g.nodes.size());
  while (!queue.empty()) {
    const std::size_t n = queue.front();
    queue.pop_front();
    for (const ValueId v : g.nodes[n].outputs) {
      if (v == kNoValue) continue;
      for (const std::int32_t reader : uses.consumers[index(v)])
        if (--missing[static_cast<std::size_t>(reader)] == 0) queue.push_back(static_cast<std::size_t>(reader));
    }
    order.push_back(n);
  }
  if (order.size() != g.nodes.size()) {
    const auto stuck = std::find_if(missing.begin(), missing.end(), [](std::size_t m) { return m > 0; });
    fail(QTN_EFORMAT, label(g.nodes[static_cast<std::size_t>(stuck - missing.begin())]), " is on a cycle");
  }
  for (const ValueId v : g.outputs)
    if (!ready[index(v)] && uses.producer[index(v)] < 0)
      fail(QTN_EFORMAT, "graph output \"", g.value(v).name, "\" is made by no node");
  if (std::is_sorted(order.begin(), order.end())) return;
  std::vector<Node> sorted;
  sorted.reserve(order.size());
  for (const std::size_t n : order) sorted.push_back(std::move(g.nodes[n]));
  g.nodes = std::move(sorted);
}

void remove_dead(Graph &g) {
  std::vector<bool> used(g.values.size(), false);
  const auto use = [&](const std::vector<ValueId> &ids) {
    for (const ValueId v : ids)
      if (v != kNoValue) used[index(v)] = true;
  };
  use(g.outputs);
  std::vector<bool> needed(g.nodes.size(), false);
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    const Node &node = g.nodes[n];
    needed[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId v) { return v != kNoValue && used[index(v)]; });
    if (!needed[n]) continue;
    use(node.inputs);
    use(node.outputs);
  }
  use(g.inputs);
  keep(g.nodes, needed);
  if (std::find(used.begin(), used.end(), false) == used.end()) return;

  std::vector<ValueId> renumbered(g.values.size(), kNoValue);
  ValueId next = 0;
  for (std::size_t v = 0; v < used.size(); ++v)
    if (used[v]) renumbered[v] = next++;
  keep(g.values, used);
  g.names.forget();
  const auto renumber = [&](std::vector<ValueId> &ids) {
    for (ValueId &v : ids)
      if (v != kNoValue) v = renumbered[index(v)];
  };
  for (Node &node : g.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  renumber(g.inputs);
  renumber(g.outputs);
}

bool has_open_dimension(const Graph &g) {
  return std::any_of(g.inputs.begin(), g.inputs.end(), [&](ValueId v) { return is_open(g.value(v)); });
}

std::optional<std::vector<ops::TensorType>> declared_input_types(const Graph &g, std::int64_t batch) {
  std::vector<ops::TensorType> types;
  for (const ValueId v : g.inputs) {
    const Value &value = g.value(v);
    if (!value.shape) return std::nullopt;
    ops::TensorType type{value.dtype.value_or(QTN_FLOAT32), *value.shape};
    for (std::size_t d = 0; d < type.shape.size(); ++d) {
      if (type.shape[d] >= 0) continue;
      if (d > 0) return std::nullopt;
      type.shape[d] = batch;
    }
    types.push_back(type);
  }
  return types;
}

void check_input(const Graph &g, std::size_t i, qdtype dtype, const Shape &shape, const char *who) {
  const Value &value = g.value(g.inputs[i]);
  if (value.dtype && *value.dtype != dtype)
    fail(QTN_EDTYPE, who, ": input \"", value.name, "\" is ", dtype_name(*value.dtype), ", not ", dtype_name(dtype));
  if (!value.shape) return;
  bool fits = value.shape->size() == shape.size();
  for (std::size_t d = 0; fits && d < shape.size(); ++d) fits = (*value.shape)[d] < 0 || (*value.shape)[d] == shape[d];
  if (!fits)
    fail(QTN_ESHAPE, who, ": input \"", value.name, "\" takes ", to_string(*value.shape), ", not ", to_string(shape));
}

}  // namespace qtn::graph
