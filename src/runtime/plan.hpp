// SPDX-License-Identifier: Apache-2.0
// A graph lowered for one set of input shapes: slots with places in an arena, and the steps that fill them.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>

#include "runtime/distinct_packs.hpp"
#include "runtime/step.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

struct Slot {
  SlotForm form;
  SlotId root = kNoSlot;                   ///< itself, or the slot whose memory it shares
  std::ptrdiff_t offset = 0;               ///< elements from the root's start
  std::shared_ptr<const Tensor> constant;  ///< bound to this in every context; most slots have none
  std::int32_t input = -1;                 ///< bound to this input at every run
  std::size_t place = 0;                   ///< of a root in the arena, bytes
};

struct Plan {
  std::vector<Slot> slots;
  std::vector<StepPtr> steps;
  std::vector<SlotId> inputs, outputs;
  std::vector<SlotId> input_views;  ///< other slots in the memory of inputs
  std::size_t arena_bytes = 0, lane_bytes = 0;
  std::size_t constant_bytes = 0;  ///< of constants that follow from shapes, which no other plan has

  /// What the plan itself takes, about: its steps and slots, and its constants.
  std::size_t bytes() const;
};

/// What outlives one plan: weights packed for the session's kernels and constants in real form, shared by all plans.
class Weights {
 public:
  /// `most_bytes`: of constants in real form, beyond which dequantized() throws.
  explicit Weights(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// A node, and the form in which a step wants its weights.
  using Key = std::pair<std::size_t, std::size_t>;
  /// Packed weights, made by `pack` the first time they are asked for.
  PackedPtr packed(const Key &key, const std::function<PackedPtr()> &pack);
  /// All of what `make` makes but the weights themselves, made the first time.
  LinearWeights numbers(const Key &key, const std::function<LinearWeights()> &make);
  /// The dequantized form of a quantized constant.
  Tensor dequantized(graph::ValueId value, const Tensor &constant);

  std::size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::map<Key, PackedPtr> packed_;
  DistinctPacks packs_;
  std::map<Key, LinearWeights> numbers_;
  std::map<graph::ValueId, Tensor> dequantized_;
  std::size_t most_bytes_, dequantized_bytes_ = 0;
};

/// What inputs of these types are to the nodes that read them, whatever they come as.
std::vector<ops::TensorType> real_types(const graph::Graph &g, std::span<const ops::TensorType> inputs);

/// `known`: what follows from inputs of these types. Values of `watched` are shown to the context's watch as they are
/// computed.
Plan lower(const graph::Graph &g, std::span<const ops::TensorType> inputs, graph::Inferred known, Isa isa,
           Weights &weights, std::span<const graph::ValueId> watched);

/// Gives every root slot a place: slots alive at the same step never overlap. Largest first, lowest free place.
void place_slots(Plan &plan);

/// Throws QTN_ENOMEM where the memory of such a context is over the limit run_bytes.
void check_context(const Plan &plan, std::size_t lanes);

/// Memory for one run at up to `lanes` threads, checked.
std::unique_ptr<Context> make_context(const Plan &plan, std::size_t lanes);

}  // namespace qtn::runtime
