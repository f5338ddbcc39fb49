// SPDX-License-Identifier: Apache-2.0
#include "train/lower.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/passes/passes.hpp"
#include "ops/common/epsilon.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

class Lowering {
 public:
  Lowering(Network &network, std::span<const ops::TensorType> inputs)
      : network_(network),
        g_(network.graph),
        inferred_(graph::infer(g_, inputs)),
        uses_(g_),
        trained_(values_of_parameters(network)),
        slot_of_(g_.values.size(), kNoSlot),
        done_(g_.nodes.size(), false) {}

  Lowered run() {
    for (const ValueId v : g_.inputs) {
      out_.inputs.push_back(write(v));
      round(v);
    }
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      if (!is_known(g_.nodes[n]) && !done_[n]) lower(n);
    for (const ValueId v : g_.outputs) out_.outputs.push_back(read(v));
    return std::move(out_);
  }

 private:
  /// By value: whether it is a parameter, or computed from one.
  static std::vector<bool> values_of_parameters(const Network &network) {
    std::vector<bool> trained(network.graph.values.size(), false);
    for (const auto &[v, parameter] : network.parameter_of) trained[at(v)] = true;
    for (const Node &node : network.graph.nodes) {
      const bool reads = !node.op->reads_shapes &&
                         std::ranges::any_of(node.inputs, [&](ValueId v) { return v != kNoValue && trained[at(v)]; });
      for (const ValueId v : node.outputs)
        if (v != kNoValue && reads) trained[at(v)] = true;
    }
    return trained;
  }

  /// Whether the results follow from shapes and constants that no training changes.
  bool is_known(const Node &node) const {
    for (const ValueId v : node.outputs)
      if (v != kNoValue && (trained_[at(v)] || !inferred_.constants[at(v)].has_data())) return false;
    return true;
  }

  Statistics &statistics(std::size_t n) { return network_.statistics[network_.statistics_of.at(n)]; }

  /// Whether the output is the first input, perhaps under another shape; dropout is more where it is trained.
  bool hands_on(const Node &node) const {
    if (node.op == &ops::kCast) return type_of(node.inputs[0]) == type_of(node.outputs[0]);
    return node.op->keeps_order && node.op != &ops::kDropout;
  }
  qdtype type_of(ValueId v) const { return inferred_.types[at(v)].dtype; }

  /// Where the mask is read nothing is dropped, as the file says.
  bool drops(const Node &node) const {
    const auto is_read = [&](ValueId v) { return !uses_.consumers[at(v)].empty() || uses_.is_output[at(v)]; };
    return node.op == &ops::kDropout && type_of(node.inputs[0]) == QTN_FLOAT32 &&
           (node.outputs.size() < 2 || node.outputs[1] == kNoValue || !is_read(node.outputs[1]));
  }

  void lower(std::size_t n) {
    const Node &node = g_.nodes[n];
    if (hands_on(node)) {
      alias(node, read(node.inputs[0]));
      return round(node.outputs[0]);
    }
    if (drops(node)) return dropout(n);
    if (network_.statistics_of.contains(n)) return normalize(n);
    if (const std::optional<ops::Clamp> clamp = graph::clamp_of(g_, node); clamp && fused_grid_of(node.outputs[0]))
      return clamp_on_grid(node, *clamp);
    SlotIds inputs = read_inputs(n), outputs;
    for (const ValueId v : node.outputs) outputs.push_back(v == kNoValue ? kNoSlot : write(v));
    if (node.op == &ops::kConv && std::ranges::all_of(inputs, [&](SlotId s) { return s == kNoSlot || is_float32(s); }))
      add(node, make_convolution(node, std::move(inputs), outputs[0]));
    else
      add(node, make_operator(node, std::move(inputs), std::move(outputs)));
    for (const ValueId v : node.outputs)
      if (v != kNoValue) round(v);
  }

  SlotIds read_inputs(std::size_t n) {
    const Node &node = g_.nodes[n];
    SlotIds inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      inputs.push_back(v == kNoValue ? kNoSlot : read(v));
      if (!network_.quantization) continue;
      if (const auto moved = network_.quantization->constants.find({n, i});
          moved != network_.quantization->constants.end())
        inputs.back() = rounded(node, inputs.back(), moved->second);
    }
    if (network_.quantization && network_.quantization->weights.count(n)) round_weights(n, inputs);
    return inputs;
  }

  /// Weights on their grid; with a normalization behind the node, as they will be when it has been folded.
  void round_weights(std::size_t n, SlotIds &inputs) {
    WeightGrid &grid = network_.quantization->weights.at(n);
    const Node &node = g_.nodes[n];
    const auto units = std::make_shared<BiasUnits>();
    std::shared_ptr<Fold> fold;
    SlotId scale = kNoSlot;
    if (grid.norm) {
      const Node &norm = g_.nodes[*grid.norm];
      scale = read(norm.inputs[1]);
      fold = std::make_shared<Fold>(Fold{statistics(*grid.norm), out_.slots[at(scale)].value,
                                         norm.attrs.get_float("epsilon", ops::kDefaultEpsilon), units});
      folds_[*grid.norm] = {fold, inputs.size() > 2 ? inputs[2] : kNoSlot};
      inputs.resize(2);
    }
    const SlotId y = like(inputs[1]);
    const ActivationGrid &input = network_.quantization->activations[grid.input];
    add(node,
        make_weights(node, inputs[1], y, grid, learned(grid.parameters), input, units, fold, scale, network_.switches));
    inputs[1] = y;
    if (inputs.size() < 3 || inputs[2] == kNoSlot) return;
    const SlotId bias = like(inputs[2]);
    add(node, make_bias(node, inputs[2], bias, units));
    inputs[2] = bias;
  }

  /// With the clamp behind it and the grid of what comes out.
  void normalize(std::size_t n) {
    const Node &node = g_.nodes[n];
    SlotIds inputs{read(node.inputs[0]), read(node.inputs[1]), read(node.inputs[2])};
    for (const SlotId s : inputs) require_float32(s);
    std::shared_ptr<Fold> fold;
    if (const auto folded = folds_.find(n); folded != folds_.end()) {
      fold = folded->second.first;
      inputs.push_back(folded->second.second);
    }
    Epilogue epilogue;
    ValueId v = node.outputs[0];
    if (uses_.single_use(v) && !has_grid(v)) {
      const auto reader = static_cast<std::size_t>(uses_.consumers[at(v)][0]);
      if (const std::optional<ops::Clamp> clamp = graph::clamp_of(g_, g_.nodes[reader])) {
        epilogue.lo = clamp->lo;
        epilogue.hi = clamp->hi;
        done_[reader] = true;
        v = g_.nodes[reader].outputs[0];
      }
    }
    epilogue.grid = fused_grid_of(v);
    add(node, make_batch_norm(node, std::move(inputs), write(v), statistics(n), n, fold, epilogue, network_.switches));
    if (!epilogue.grid) round(v);
  }

  void clamp_on_grid(const Node &node, const ops::Clamp &clamp) {
    const ValueId v = node.outputs[0];
    const SlotId x = read(node.inputs[0]);
    require_float32(x);
    add(node, make_fake_quantize(x, write(v), {clamp.lo, clamp.hi, fused_grid_of(v)}, network_.switches));
  }

  std::optional<std::size_t> grid_of(ValueId v) const {
    if (!network_.quantization) return std::nullopt;
    const auto found = network_.quantization->activation_of.find(v);
    if (found == network_.quantization->activation_of.end()) return std::nullopt;
    return found->second;
  }
  bool has_grid(ValueId v) const { return grid_of(v).has_value(); }

  /// What a step rounds to in the same pass. The gradient of a learned grid needs what comes before it.
  ActivationGrid *fused_grid_of(ValueId v) {
    const std::optional<std::size_t> i = grid_of(v);
    if (!i || network_.quantization->activations[*i].learned()) return nullptr;
    return &network_.quantization->activations[*i];
  }

  /// A step that reads a value from now on reads it on its grid, if it has one.
  void round(ValueId v) {
    if (const std::optional<std::size_t> i = grid_of(v)) slot_of_[at(v)] = rounded({}, slot_of_[at(v)], *i);
  }

  SlotId rounded(const Node &node, SlotId x, std::size_t i) {
    ActivationGrid &grid = network_.quantization->activations[i];
    require_float32(x);
    const SlotId y = like(x);
    if (grid.learned())
      add(node, make_learned_quantize(x, y, grid, learned(network_.quantization->of_activation[i]), network_.switches));
    else
      add(node, make_fake_quantize(x, y, {.grid = &grid}, network_.switches));
    return y;
  }

  /// Parameters of a grid; one that several steps use is one slot.
  SlotIds learned(const std::vector<std::size_t> &parameters) {
    SlotIds slots;
    for (const std::size_t i : parameters) {
      const auto [known, added] = slot_of_learned_.try_emplace(i, static_cast<SlotId>(out_.slots.size()));
      slots.push_back(known->second);
      if (!added) continue;
      const Parameter &p = network_.parameters[network_.first_of_grids + i];
      Slot slot;
      slot.name = p.name;
      slot.type = {QTN_FLOAT32, p.value.shape()};
      slot.root = known->second;
      slot.given = true;
      give(slot, p);
      out_.slots.push_back(std::move(slot));
    }
    return slots;
  }

  /// Steps other than those of operators have no other numbers.
  bool is_float32(SlotId s) const { return out_.slots[at(s)].type.dtype == QTN_FLOAT32; }

  void require_float32(SlotId s) const {
    const Slot &slot = out_.slots[at(s)];
    if (!is_float32(s))
      fail(QTN_EUNSUPPORTED, "trainer: \"", slot.name, "\" is ", dtype_name(slot.type.dtype),
           ", where only float32 can be trained");
  }

  static void give(Slot &slot, const Parameter &p) {
    slot.value = p.value;
    if (p.frozen) return;
    slot.gradient = p.gradient;
    slot.needs_grad = true;
  }

  SlotId like(SlotId of) {
    const auto s = static_cast<SlotId>(out_.slots.size());
    Slot slot;
    slot.name = out_.slots[at(of)].name;
    slot.type = out_.slots[at(of)].type;
    slot.root = s;
    out_.slots.push_back(std::move(slot));
    return s;
  }

  void add(const Node &node, StepPtr step) {
    // What is trained before the step wants gradients to come through it.
    const Slot *trained = nullptr;
    for (const SlotId s : step->reads)
      if (out_.slots[at(s)].needs_grad) trained = &out_.slots[at(s)];
    if (trained) {
      for (const SlotId s : step->writes) {
        const qdtype dtype = out_.slots[at(s)].type.dtype;
        if (is_floating(dtype) && (step->grad_inputs.empty() || dtype != QTN_FLOAT32))
          fail(QTN_EUNSUPPORTED, "trainer: node \"", node.name, "\": ", node.op->name,
               dtype == QTN_FLOAT32 ? "" : cat(" to ", dtype_name(dtype)),
               " has no gradient, which what comes before \"", trained->name, "\" needs");
        out_.slots[at(s)].needs_grad = is_float32(s);
      }
    }
    out_.steps.push_back(std::move(step));
  }

  void alias(const Node &node, SlotId from) {
    const SlotId s = write(node.outputs[0]);
    out_.slots[at(s)].root = out_.slots[at(from)].root;
    out_.slots[at(s)].needs_grad = out_.slots[at(from)].needs_grad;
  }

  void dropout(std::size_t n) {
    const Node &node = g_.nodes[n];
    const ValueId ratio_id = node.inputs.size() > 1 ? node.inputs[1] : kNoValue;
    if (ratio_id != kNoValue && !inferred_.constants[at(ratio_id)].has_data())
      fail(QTN_EUNSUPPORTED, "trainer: node \"", node.name, "\": the ratio of Dropout, \"", g_.value(ratio_id).name,
           "\", is not a constant");
    const double ratio = ratio_id == kNoValue ? 0.5 : item(inferred_.constants[at(ratio_id)]);
    // The model in integers has no such node, and on the grid of its result is what comes to it.
    SlotId x = read(node.inputs[0]);
    if (const std::optional<std::size_t> i = grid_of(node.outputs[0])) x = rounded({}, x, *i);
    if (ratio <= 0) return alias(node, x);
    add(node, make_dropout(node, x, write(node.outputs[0]), static_cast<float>(ratio), n, network_.switches));
  }

  SlotId read(ValueId v) {
    if (slot_of_[at(v)] != kNoSlot) return slot_of_[at(v)];
    const SlotId s = slot_of_[at(v)] = add_slot(v);
    Slot &slot = out_.slots[at(s)];
    slot.given = true;
    if (const auto parameter = network_.parameter_of.find(v); parameter != network_.parameter_of.end())
      give(slot, network_.parameters[parameter->second]);
    else
      slot.value = inferred_.constants[at(v)].to_contiguous();
    return s;
  }

  SlotId write(ValueId v) { return slot_of_[at(v)] = add_slot(v); }

  SlotId add_slot(ValueId v) {
    const auto s = static_cast<SlotId>(out_.slots.size());
    Slot slot;
    slot.name = g_.value(v).name;
    slot.type = inferred_.types[at(v)];
    slot.root = s;
    out_.slots.push_back(std::move(slot));
    return s;
  }

  Network &network_;
  const graph::Graph &g_;
  const graph::Inferred inferred_;
  const graph::Uses uses_;
  const std::vector<bool> trained_;
  Lowered out_;
  std::vector<SlotId> slot_of_;                                            // by value id
  std::map<std::size_t, SlotId> slot_of_learned_;                          // by parameter
  std::vector<bool> done_;                                                 // by node: with another
  std::map<std::size_t, std::pair<std::shared_ptr<Fold>, SlotId>> folds_;  // by normalization, with the bias before it
};

}  // namespace

Lowered lower(Network &network, std::span<const ops::TensorType> inputs) { return Lowering(network, inputs).run(); }

}  // namespace qtn::train
