// SPDX-License-Identifier: Apache-2.0
#include "runtime/stages.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "graph/budget.hpp"
#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"

namespace qtn::runtime {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

/// Those nodes of the graph, which reads what they read and others make as inputs. Values keep their ids.
graph::Graph part_of(const graph::Graph &g, const std::vector<bool> &nodes, std::vector<ValueId> outputs) {
  graph::Graph part;
  part.name = g.name;
  part.values = g.values;
  part.outputs = std::move(outputs);
  std::vector<bool> made(g.values.size(), false), taken(g.values.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    if (!nodes[n]) continue;
    for (const ValueId v : g.nodes[n].outputs)
      if (v != kNoValue) made[at(v)] = true;
    part.nodes.push_back(g.nodes[n]);
  }
  for (const Node &node : part.nodes)
    for (const ValueId v : node.inputs) {
      if (v == kNoValue || made[at(v)] || taken[at(v)] || g.value(v).is_constant()) continue;
      taken[at(v)] = true;
      part.inputs.push_back(v);
    }
  return part;
}

}  // namespace

Division divide(const graph::Graph &g, const graph::PartlyInferred &known) {
  Division division;
  division.branches.resize(g.nodes.size());
  division.is_first.resize(g.nodes.size());
  division.is_stop.resize(g.nodes.size());
  for (const std::size_t n : known.stops) {
    division.key.push_back(static_cast<std::int64_t>(n));
    division.is_stop[n] = true;
    const Node &node = g.nodes[n];
    const Tensor *condition = node.op == &ops::kIf ? &known.constants[at(node.inputs[0])] : nullptr;
    if (!condition || !condition->has_data() || condition->quantized()) continue;
    division.branches[n] = graph::branch_of(*condition);
    division.key.push_back(-1 - static_cast<std::int64_t>(*division.branches[n]));
  }
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const std::vector<ValueId> &outputs = g.nodes[n].outputs;
    division.is_first[n] = !division.is_stop[n] && std::all_of(outputs.begin(), outputs.end(), [&](ValueId v) {
      return v == kNoValue || known.types[at(v)].has_value();
    });
  }
  return division;
}

Runner::Stages::Stages(const graph::Graph &g, const Division &division, const std::vector<ValueId> &watched)
    : graph_(g), is_watched_(g.values.size(), false), constants_(graph::constant_bytes(g)) {
  for (const ValueId v : watched) is_watched_[at(v)] = true;
  if (std::ranges::any_of(division.branches, [](const auto &branch) { return branch.has_value(); })) {
    graph::inline_branches(graph_, division.branches);
    // Values that are watched must stay what they are.
    if (watched.empty()) graph::run_passes(graph_, graph::Pipeline::execution);
    whole_ = std::make_unique<Runner>(graph_, watched);
    return;
  }
  std::vector<bool> is_rest(g.nodes.size()), is_wanted(g.values.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    is_rest[n] = !division.is_first[n] && !division.is_stop[n];
    if (division.is_stop[n]) stops_.push_back(n);
    if (division.is_first[n]) continue;
    for (const ValueId v : g.nodes[n].inputs)
      if (v != kNoValue) is_wanted[at(v)] = true;
  }
  for (const ValueId v : g.outputs) is_wanted[at(v)] = true;
  const auto wanted_of = [&](const std::vector<bool> &nodes) {
    std::vector<ValueId> wanted;
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      for (const ValueId v : g.nodes[n].outputs)
        if (nodes[n] && v != kNoValue && is_wanted[at(v)]) wanted.push_back(v);
    return wanted;
  };
  const auto runner_of = [&](const std::vector<bool> &nodes) {
    graph::Graph part = part_of(g, nodes, wanted_of(nodes));
    std::vector<ValueId> seen;
    for (const Node &node : part.nodes)
      for (const ValueId v : node.outputs)
        if (v != kNoValue && is_watched_[at(v)]) seen.push_back(v);
    return part.nodes.empty() ? nullptr : std::make_unique<Runner>(std::move(part), seen, true);
  };
  first_ = runner_of(division.is_first);
  rest_ = runner_of(is_rest);
  for (const std::size_t n : stops_)
    for (const auto &body : g.nodes[n].bodies) {
      graph::Graph optimized = *body;
      graph::run_passes(optimized, graph::Pipeline::execution);
      bodies_[body.get()] = std::make_unique<Runner>(std::move(optimized), std::vector<ValueId>(), true);
    }
}

void Runner::Stages::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const Look &look) const {
  if (whole_) return whole_->run(inputs, outputs, look);
  Values values(graph_.values.size());
  std::size_t input_bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[at(graph_.inputs[i])] = *inputs[i];
    input_bytes += inputs[i]->nbytes();
    if (look.watch && is_watched_[at(graph_.inputs[i])] && inputs[i]->dtype() == QTN_FLOAT32)
      (*look.watch)(graph_.inputs[i], inputs[i]->to_contiguous());
  }
  const std::size_t limit = graph::run_limit(constants_, input_bytes);
  const graph::RunBound bound(limit);
  if (first_) run_part(*first_, values, look);
  for (const std::size_t n : stops_) run_stop(graph_.nodes[n], values, limit, look);
  if (rest_) run_part(*rest_, values, look);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId v = graph_.outputs[i];
    const Tensor y = read(v, values);
    // Nothing else has it, where `values` and y do.
    const bool is_free = y.contiguous() && !graph_.value(v).is_constant() && y.storage().use_count() == 2;
    outputs[i] = y.quantized() ? dequantize(y) : is_free ? y : y.clone();
  }
}

void Runner::Stages::run_part(const Runner &part, Values &values, const Look &look) const {
  std::vector<const Tensor *> inputs;
  for (const ValueId v : part.graph().inputs) inputs.push_back(&values[at(v)]);
  std::vector<Tensor> outputs(part.graph().outputs.size());
  part.run(inputs, outputs, look);
  for (std::size_t i = 0; i < outputs.size(); ++i) values[at(part.graph().outputs[i])] = std::move(outputs[i]);
}

/// What a node sees of a value: on its grid where it has one. Values are held as floats, which lie on it already, except
/// for inputs of the model.
Tensor Runner::Stages::read(ValueId v, const Values &values) const {
  const graph::Value &value = graph_.value(v);
  if (value.is_constant()) return value.constant;
  const Tensor &t = values[at(v)];
  return value.quantizer && !t.quantized() ? quantize(t, value.quantizer) : t;
}

void Runner::Stages::run_stop(const Node &node, Values &values, std::size_t limit, const Look &look) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = look.times ? Clock::now() : Clock::time_point();
  std::vector<Tensor> operands;
  std::vector<const Tensor *> pointers;
  for (const ValueId v : node.inputs) operands.push_back(v == kNoValue ? Tensor() : read(v, values).to_contiguous());
  for (std::size_t i = 0; i < operands.size(); ++i)
    pointers.push_back(node.inputs[i] == kNoValue ? nullptr : &operands[i]);
  const graph::RunBody run_body = [&](const graph::Graph &body, std::span<const Tensor> inputs) {
    std::vector<const Tensor *> given;
    for (const Tensor &x : inputs) given.push_back(&x);
    std::vector<Tensor> outputs(body.outputs.size());
    bodies_.at(&body)->run(given, outputs, {});
    return outputs;
  };
  try {
    std::vector<QuantizerPtr> grids;
    for (const ValueId v : node.outputs) grids.push_back(v == kNoValue ? nullptr : graph_.value(v).quantizer);
    const std::vector<Tensor> made = graph::run_node(node, pointers, grids, run_body, 0, limit);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue) continue;
      values[at(v)] = made[o].quantized() ? dequantize(made[o]) : made[o].to_contiguous();
      if (look.watch && is_watched_[at(v)] && values[at(v)].dtype() == QTN_FLOAT32) (*look.watch)(v, values[at(v)]);
    }
  } catch (const Error &e) {
    fail(e.status(), "node \"", node.name, "\": ", e.what());
  }
  if (!look.times) return;
  StepTime time{node.name,
                node.op->name,
                "definition",
                false,
                0,
                0,
                std::chrono::duration<double, std::milli>(Clock::now() - begin).count()};
  for (const Tensor &t : operands) time.bytes += t.nbytes();
  look.times->push_back(std::move(time));
}

std::size_t Runner::Stages::weights_bytes() const {
  std::size_t bytes = 0;
  for (const auto *part : {&whole_, &first_, &rest_})
    if (*part) bytes += (*part)->weights_bytes();
  for (const auto &[body, runner] : bodies_) bytes += runner->weights_bytes();
  return bytes;
}

}  // namespace qtn::runtime
