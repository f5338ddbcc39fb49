// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/budget.hpp"
#include "graph/control.hpp"
#include "graph/infer_branches.hpp"
#include "graph/open_inputs.hpp"

namespace qtn::graph {

void check_size(const Value &input, const Shape &shape) {
  Size bytes = 8;
  std::size_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim > 1 && static_cast<std::size_t>(dim) > Size::kLimit / bytes.value())
      fail(QTN_ESHAPE, "input \"", input.name, "\" of ", to_string(shape), " is too large");
    bytes = bytes * std::max<std::int64_t>(1, dim);
    if (dim >= 0) count *= static_cast<std::size_t>(dim);
  }
  check_limit(Limit::tensor_elements, count);
}

namespace {

/// What is known of the values of a graph, node by node: types, and data where it follows from shapes and constants.
class Knowledge {
 public:
  Knowledge(const Graph &g, FoldBudget &budget)
      : g_(g), known_(g.values.size()), is_known_(g.values.size(), false), budget_(budget) {
    for (std::size_t v = 0; v < g.values.size(); ++v) {
      const Value &value = g.values[v];
      if (value.is_constant())
        learn(static_cast<ValueId>(v), value.constant, value.quantizer ? QTN_FLOAT32 : value.constant.dtype());
    }
  }

  /// What is on a grid is computed by runs: in integers it may round otherwise than floats do on their way to the grid.
  void learn(ValueId v, const Tensor &t, qdtype dtype) {
    known_[at(v)] = t.has_data() && !g_.value(v).quantizer ? t : Tensor::meta(dtype, t.shape());
    is_known_[at(v)] = true;
  }

  /// The results of a node whose inputs are known; nothing of another one.
  void learn_results(const Node &node) {
    operands_.clear();
    bool constant = true;
    for (const ValueId v : node.inputs) {
      if (v != kNoValue && !is_known_[at(v)]) return;
      operands_.push_back(v == kNoValue ? nullptr : &known_[at(v)]);
      constant = constant && (v == kNoValue || operands_.back()->has_data());
    }
    if (node.op->make && constant && !budget_.take(node, operands_))
      throw NotKnown(cat(node.op->name, ": too much to find before a run"));
    const ops::Call call{node.attrs, operands_, node.outputs.size()};
    const std::vector<ops::TensorType> types = ops::infer_op(*node.op, call);
    for (const ops::TensorType &type : types)
      check_limit(Limit::tensor_elements, static_cast<std::size_t>(element_count(type.shape)));
    // Shape reads no data, so its result is known even where its input is not.
    const bool fold =
        (constant || node.op->reads_shapes) && !ops::as_custom(*node.op) && budget_.take(node, operands_, types);
    std::vector<Tensor> results;
    if (fold) results = ops::run_op(*node.op, call);
    if (fold && node.clamp) ops::clamp_elements(results[0], *node.clamp);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kNoValue)
        learn(node.outputs[o], fold ? results[o] : Tensor::meta(types[o].dtype, types[o].shape), types[o].dtype);
  }

  /// What the branch of an If makes; false where it is not known which, or of what.
  bool learn_branch(const Node &node);

  void report(PartlyInferred &result) const {
    result.types.resize(known_.size());
    result.constants.resize(known_.size());
    for (std::size_t v = 0; v < known_.size(); ++v) {
      if (is_known_[v]) result.types[v] = {known_[v].dtype(), known_[v].shape()};
      if (g_.values[v].is_constant())
        result.constants[v] = g_.values[v].constant;
      else if (known_[v].has_data())
        result.constants[v] = known_[v];
    }
  }

 private:
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

  const Graph &g_;
  std::vector<Tensor> known_;
  std::vector<bool> is_known_;
  FoldBudget &budget_;
  std::vector<const Tensor *> operands_;
};

enum class Branches { stop, taken };

/// Goes on from what is known of the inputs.
PartlyInferred walk_nodes(const Graph &g, Knowledge &knowledge, Misfit misfit, Branches branches) {
  PartlyInferred result;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    try {
      if (branches == Branches::taken && knowledge.learn_branch(node))
        result.stops.push_back(n);
      else
        knowledge.learn_results(node);
    } catch (const NotKnown &e) {
      if (result.stops.empty()) result.why = cat("node \"", node.name, "\": ", e.what());
      result.stops.push_back(n);
    } catch (const Error &e) {
      if (misfit == Misfit::throws) fail(e.status(), "node \"", node.name, "\": ", e.what());
      result.misfits = true;
      result.stops.push_back(n);
    }
  }
  knowledge.report(result);
  return result;
}

PartlyInferred walk(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values,
                    Misfit misfit, Branches branches, FoldBudget &budget) {
  if (inputs.size() != g.inputs.size())
    fail(QTN_EINVAL, "model takes ", g.inputs.size(), " inputs, not ", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) check_size(g.value(g.inputs[i]), inputs[i].shape);
  Knowledge knowledge(g, budget);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    knowledge.learn(
        g.inputs[i],
        i < values.size() && values[i].has_data() ? values[i] : Tensor::meta(inputs[i].dtype, inputs[i].shape),
        inputs[i].dtype);
  return walk_nodes(g, knowledge, misfit, branches);
}

bool Knowledge::learn_branch(const Node &node) {
  if (node.op != &ops::kIf) return false;
  for (const ValueId v : node.inputs)
    if (!is_known_[at(v)]) return false;
  const Tensor &condition = known_[at(node.inputs[0])];
  if (!condition.has_data()) return false;
  const Graph &branch = *node.bodies.at(branch_of(condition));
  std::vector<ops::TensorType> types;
  std::vector<Tensor> values;
  for (const ValueId v : std::span(node.inputs).subspan(1)) {
    values.push_back(known_[at(v)]);
    types.push_back({values.back().dtype(), values.back().shape()});
  }
  const PartlyInferred made = walk(branch, types, values, Misfit::throws, Branches::taken, budget_);
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId y = branch.outputs[o];
    if (node.outputs[o] == kNoValue || !made.types[at(y)]) continue;
    const auto &[dtype, shape] = *made.types[at(y)];
    learn(node.outputs[o], made.constants[at(y)].has_data() ? made.constants[at(y)] : Tensor::meta(dtype, shape),
          dtype);
  }
  return true;
}

/// What follows from shapes alone is small, except for maps of the pixels of large inputs.
constexpr std::size_t kConstants = std::size_t{12} << 20;

}  // namespace

bool may_say_shapes(const ops::TensorType &input) {
  const std::int64_t most = is_floating(input.dtype) ? static_cast<std::int64_t>(kMaxRank) : 64;
  return input.shape.size() <= 1 && element_count(input.shape) <= most;
}

PartlyInferred infer_partly(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values,
                            Misfit misfit) {
  FoldBudget budget(kConstants);
  return walk(g, inputs, values, misfit, Branches::stop, budget);
}

PartlyInferred try_types(const Graph &g, std::span<const ops::TensorType> inputs, Misfit misfit) {
  FoldBudget budget = FoldBudget::of_shapes();
  return walk(g, inputs, {}, misfit, Branches::stop, budget);
}

PartlyInferred infer_branches(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values) {
  FoldBudget budget(kConstants);
  return walk(g, inputs, values, Misfit::throws, Branches::taken, budget);
}

std::optional<std::vector<ops::TensorType>> trial_input_types(const Graph &g, std::int64_t length) {
  std::vector<ops::TensorType> types;
  for (const ValueId v : g.inputs) {
    const Value &value = g.value(v);
    if (!value.shape) return std::nullopt;
    types.push_back({value.dtype.value_or(QTN_FLOAT32), *value.shape});
    for (std::int64_t &dim : types.back().shape)
      if (dim < 0) dim = length;
  }
  return types;
}

PartlyInferred infer_closed(const Graph &g) {
  FoldBudget budget(kConstants);
  Knowledge knowledge(g, budget);
  for (const ValueId v : g.inputs) {
    const Value &value = g.value(v);
    const qdtype dtype = value.dtype.value_or(QTN_FLOAT32);
    if (!is_open(value)) knowledge.learn(v, Tensor::meta(dtype, *value.shape), dtype);
  }
  return walk_nodes(g, knowledge, Misfit::throws, Branches::stop);
}

Inferred complete(PartlyInferred part) {
  if (!part.stops.empty()) throw NotKnown(part.why);
  Inferred result;
  for (const auto &type : part.types) result.types.push_back(type.value_or(ops::TensorType{QTN_FLOAT32, {}}));
  result.constants = std::move(part.constants);
  return result;
}

Inferred infer(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values) {
  return complete(infer_partly(g, inputs, values));
}

}  // namespace qtn::graph
