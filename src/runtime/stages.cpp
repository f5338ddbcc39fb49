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

// What follows an If of a branch that a run has chosen is planned in a run within that run. So deep, Ifs run by their
// definition, which nests no further.
constexpr std::size_t kDeepest = 32;

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

/// Whether a node stops whatever the shapes of its operands, since what it makes depends on data.
bool stops_by_data(const Node &node, const std::vector<bool> &follows_from_shapes, bool takes_branches) {
  if (!node.op->make) return !node.bodies.empty() && !(takes_branches && node.op == &ops::kIf);
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.op->shapes_from.holds(i) && node.inputs[i] != kNoValue && !follows_from_shapes[at(node.inputs[i])])
      return true;
  return false;
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

Runner::Stages::Stages(const graph::Graph &g, const Division &division, const std::vector<ValueId> &watched,
                       const Within &within)
    : graph_(g),
      is_watched_(g.values.size(), false),
      is_held_(g.values.size(), false),
      constants_(std::max(graph::constant_bytes(g), within.constants)),
      depth_(within.depth) {
  for (const ValueId v : watched) is_watched_[at(v)] = true;
  if (takes_branches() &&
      std::ranges::any_of(division.branches, [](const auto &branch) { return branch.has_value(); })) {
    graph::Graph chosen = g;
    graph::inline_branches(chosen, division.branches);
    // Values that are watched must stay what they are.
    if (watched.empty()) graph::run_passes(chosen, graph::Pipeline::execution);
    whole_ = std::make_unique<Runner>(std::move(chosen), watched, Within{false, constants_, depth_ + 1});
    return;
  }
  cut(division);
  for (Stage &stage : stages_) {
    if (!stage.nodes.empty()) add_part(stage);
    for (const std::size_t n : stage.stops)
      for (const auto &body : g.nodes[n].bodies) {
        graph::Graph optimized = *body;
        graph::run_passes(optimized, graph::Pipeline::execution);
        bodies_[body.get()] = std::make_unique<Runner>(std::move(optimized), std::vector<ValueId>(), part_of_whole());
      }
  }
}

bool Runner::Stages::takes_branches() const { return depth_ < kDeepest; }

/// A node is in the first stage in which all that it reads is there. What else stops a part, that part finds out.
void Runner::Stages::cut(const Division &division) {
  std::vector<std::size_t> known_in(graph_.values.size(), 0);  // by value: the first stage whose part may read it
  std::vector<std::size_t> made_in(graph_.values.size(), 0);   // the stage whose part makes it, from 1
  std::vector<bool> follows_from_shapes(graph_.values.size());
  for (std::size_t v = 0; v < graph_.values.size(); ++v) follows_from_shapes[v] = graph_.values[v].is_constant();
  for (const ValueId v : graph_.outputs) is_held_[at(v)] = true;
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node &node = graph_.nodes[n];
    std::size_t s = 0;
    bool is_known = node.bodies.empty();
    for (const ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      s = std::max(s, known_in[at(v)]);
      is_known = is_known && (node.op->reads_shapes || follows_from_shapes[at(v)]);
    }
    if (s == stages_.size()) stages_.emplace_back();
    const bool stops =
        division.is_stop[n] || (!division.is_first[n] && stops_by_data(node, follows_from_shapes, takes_branches()));
    const std::size_t part = stops ? 0 : s + 1;
    (stops ? stages_[s].stops : stages_[s].nodes).push_back(n);
    for (const ValueId v : node.inputs)
      if (v != kNoValue && made_in[at(v)] != part) is_held_[at(v)] = true;
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      known_in[at(v)] = s + stops;
      made_in[at(v)] = part;
      follows_from_shapes[at(v)] = is_known;
    }
  }
}

/// The nodes of the stage, as a graph which reads what others make as inputs.
void Runner::Stages::add_part(Stage &stage) const {
  Part part;
  graph::Graph g;
  g.name = graph_.name;
  std::map<ValueId, ValueId> here;
  const auto moved = [&](ValueId v) {
    if (v == kNoValue) return v;
    const auto [found, is_new] = here.try_emplace(v, static_cast<ValueId>(part.ids.size()));
    if (is_new) {
      g.add_value(graph_.value(v));
      part.ids.push_back(v);
    }
    return found->second;
  };
  std::vector<ValueId> watched;
  for (const std::size_t n : stage.nodes) {
    Node node = graph_.nodes[n];
    for (ValueId &v : node.inputs) {
      const std::size_t known = part.ids.size();
      v = moved(v);
      if (part.ids.size() > known && !g.value(v).is_constant()) g.inputs.push_back(v);
    }
    for (ValueId &v : node.outputs) {
      v = moved(v);
      if (v == kNoValue) continue;
      const ValueId whole = part.ids[at(v)];
      if (is_held_[at(whole)]) g.outputs.push_back(v);
      if (is_watched_[at(whole)]) watched.push_back(v);
    }
    g.nodes.push_back(std::move(node));
  }
  part.runner = std::make_unique<Runner>(std::move(g), std::move(watched), part_of_whole());
  stage.part = std::move(part);
}

void Runner::Stages::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const Look &look) const {
  if (whole_) return whole_->run(inputs, outputs, look);
  Values values(graph_.values.size());
  std::size_t input_bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = graph_.inputs[i];
    values[at(v)] = *inputs[i];
    input_bytes += inputs[i]->nbytes();
    if (look.watch && is_watched_[at(v)] && inputs[i]->dtype() == QTN_FLOAT32)
      (*look.watch)(v, inputs[i]->to_contiguous());
  }
  const std::size_t limit = graph::run_limit(constants_, input_bytes);
  const graph::RunBound bound(limit);
  for (const Stage &stage : stages_) {
    if (stage.part) run_part(*stage.part, values, look);
    for (const std::size_t n : stage.stops) run_stop(graph_.nodes[n], values, limit, look);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId v = graph_.outputs[i];
    const Tensor y = read(v, values);
    // Nothing else has it, where `values` and y do.
    const bool is_free = y.contiguous() && !graph_.value(v).is_constant() && y.storage().use_count() == 2;
    outputs[i] = y.quantized() ? dequantize(y) : is_free ? y : y.clone();
  }
}

void Runner::Stages::run_part(const Part &part, Values &values, const Look &look) const {
  const graph::Graph &g = part.runner->graph();
  std::vector<const Tensor *> inputs;
  for (const ValueId v : g.inputs) inputs.push_back(&values[at(part.ids[at(v)])]);
  std::vector<Tensor> outputs(g.outputs.size());
  Watch shown;
  Look here = look;
  if (look.watch) {
    shown = [&](ValueId v, const Tensor &t) { (*look.watch)(part.ids[at(v)], t); };
    here.watch = &shown;
  }
  part.runner->run(inputs, outputs, here);
  for (std::size_t i = 0; i < outputs.size(); ++i) values[at(part.ids[at(g.outputs[i])])] = std::move(outputs[i]);
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
      Tensor &t = values[at(v)];
      t = made[o].quantized() ? dequantize(made[o]) : made[o].to_contiguous();
      if (look.watch && is_watched_[at(v)] && t.dtype() == QTN_FLOAT32) (*look.watch)(v, t);
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
  if (whole_) bytes += whole_->weights_bytes();
  for (const Stage &stage : stages_)
    if (stage.part) bytes += stage.part->runner->weights_bytes();
  for (const auto &[body, runner] : bodies_) bytes += runner->weights_bytes();
  return bytes;
}

}  // namespace qtn::runtime
