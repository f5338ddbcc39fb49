// SPDX-License-Identifier: Apache-2.0
// The forms of a graph's values in a plan, made when first asked for: real numbers, 8-bit integers, or both, with the
// steps that convert between them.
#pragma once

#include "graph/integer.hpp"
#include "runtime/layout.hpp"
#include "runtime/plan.hpp"
#include "runtime/views.hpp"

namespace qtn::runtime {

/// Kernels know uint8 only: an int8 grid is the uint8 grid 128 further up.
QuantizerPtr canonical(const QuantizerPtr &q);

class Forms {
 public:
  Forms(const graph::Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values, Isa isa,
        Weights &weights);

 protected:
  // The node that is being lowered, its values and their slots.
  static std::size_t at(graph::ValueId v) { return static_cast<std::size_t>(v); }
  const SlotForm &form(SlotId s) const { return plan_.slots[static_cast<std::size_t>(s)].form; }
  Edge edge(SlotId s) const { return {s, form(s)}; }
  const Shape &shape_of(graph::ValueId v) const { return known_.types[at(v)].shape; }
  graph::ValueId input(std::size_t i) const { return i < node_->inputs.size() ? node_->inputs[i] : graph::kNoValue; }
  graph::ValueId output() const { return node_->outputs[0]; }

  SlotId add_slot(SlotForm slot_form);
  SlotId add_constant(const Tensor &constant);
  SlotId add_view(SlotId of, const View &view);
  void add_step(StepPtr step);
  SlotId converted(SlotId from, SlotForm to, StepPtr (*make)(const Edge &, const Edge &, Isa));
  SlotId copied(SlotId from, const Shape &strides);
  SlotId flipped(SlotId from, const QuantizerPtr &grid);

  bool is_8bit(graph::ValueId v) const {
    return v != graph::kNoValue && graph::is_8bit_activation(g_.value(v).quantizer);
  }
  /// Gives a value the real numbers computed for it, through its quantizer where it has one.
  void settle(graph::ValueId v, SlotId computed);
  /// Contiguous real numbers (or plain integers of shape arithmetic).
  SlotId real(graph::ValueId v);
  /// The same under any strides: as they were computed.
  SlotId any_real(graph::ValueId v);
  /// The same as a picture without gaps.
  SlotId real_picture(graph::ValueId v);
  /// 8-bit integers under any strides.
  SlotId integer(graph::ValueId v);
  /// The same without gaps: a dense picture, or contiguous.
  SlotId dense(SlotId s);
  bool is_dense_picture(SlotId s) const;
  SlotId contiguous(SlotId s);
  SlotId picture(SlotId s);

  /// An output of the graph: in integers where it has a grid and inputs came so, else real numbers.
  SlotId outgoing(graph::ValueId v);

  /// A new slot for an output that holds integers.
  SlotId integer_output(graph::ValueId v, const Shape &shape, const Shape &strides);

  /// Index of the step that fills a slot; -1 for inputs and constants.
  std::ptrdiff_t producer(SlotId s) const;
  /// The step that computes value v as a dense picture in slot s, or contiguous rows of floats, if only this node reads
  /// it: it may be made to compute more, or elsewhere.
  Step *open_step(graph::ValueId v, SlotId s) const;

  const graph::Graph &g_;
  Isa isa_;
  Weights &weights_;
  graph::Inferred known_;
  Plan plan_;
  std::vector<SlotId> real_, integer_;                  // by value
  std::vector<SlotId> contiguous_real_, real_picture_;  // copies of real_ where it lies otherwise
  std::vector<std::size_t> readers_;                    // of a value
  std::vector<bool> read_as_picture_;                   // by value
  const graph::Node *node_ = nullptr;
  std::size_t node_index_ = 0;
  bool integers_ = false;  // inputs on a grid come as its integers
};

}  // namespace qtn::runtime
