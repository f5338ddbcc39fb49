// SPDX-License-Identifier: Apache-2.0
// A plan that is being made of a graph: the node under way, where values lie, and the steps so far. A value may lie in
// several slots, as real numbers and as 8-bit integers; each is made when first asked for, with the steps that convert.
#pragma once

#include <map>
#include <tuple>

#include "runtime/layout.hpp"
#include "runtime/lower/views.hpp"
#include "runtime/plan.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// Kernels know uint8 only: an int8 grid is the uint8 grid 128 further up.
QuantizerPtr canonical(const QuantizerPtr &q);

/// The cache for one of the parts that a cache is for.
PackCache part_of(const PackCache &all, std::size_t part, std::size_t parts);

class Lowering {
 public:
  Lowering(const graph::Graph &graph, std::span<const ops::TensorType> inputs, graph::Inferred known, Isa instructions,
           Weights &weights);

  const graph::Graph &g;
  const Isa isa;

  void begin(std::size_t node);
  /// After the last node.
  Plan finish();

  // The node under way.
  const graph::Node &node() const { return *node_; }
  std::size_t node_index() const { return node_index_; }
  graph::ValueId input(std::size_t i) const { return i < node_->inputs.size() ? node_->inputs[i] : graph::kNoValue; }
  graph::ValueId output(std::size_t o = 0) const {
    return o < node_->outputs.size() ? node_->outputs[o] : graph::kNoValue;
  }
  ops::Clamp clamp() const;
  /// What its results become on a grid.
  QuantizedRange range(const QuantizerPtr &q) const;
  /// Its inputs, with data where they are constants, in storage; and the types of its outputs.
  std::vector<const Tensor *> constant_operands(std::vector<Tensor> &storage) const;
  std::vector<ops::TensorType> output_types() const;
  /// The cache for one part of its weights, where it has several: that of all plans, but where weights follow from the
  /// shapes or values that this plan is for.
  PackCache pack_cache(std::size_t part = 0, std::size_t parts = 1);
  /// The weights of one part, which are not read again for another plan unless they are packed for it; they have so many
  /// channels over and over.
  LinearWeights finished(LinearWeights w, std::size_t channels, const Quantizer &x, const Quantizer *y,
                         std::size_t part = 0);
  /// The same with biases and multipliers that `finish` gives them.
  LinearWeights finished(LinearWeights w, std::size_t part, const std::function<void(LinearWeights &)> &finish);
  /// Where its outputs lie in an operand of this form, if all they do is to look at it.
  std::optional<std::vector<View>> views(const SlotForm &x) const;
  /// The same as slots; false where x is an input of the graph, whose memory no other slot may share.
  bool as_views(SlotId x, std::vector<SlotId> &result);

  // What is known of values.
  const graph::Inferred &known() const { return known_; }
  const ops::TensorType &type_of(graph::ValueId v) const { return known_.types[at(v)]; }
  const Shape &shape_of(graph::ValueId v) const { return known_.types[at(v)].shape; }
  /// Without data where the value is computed.
  const Tensor &constant_of(graph::ValueId v) const { return known_.constants[at(v)]; }
  /// A contiguous float32 constant, or one without data.
  Tensor real_constant(graph::ValueId v);
  bool is_real(graph::ValueId v) const { return v != graph::kNoValue && type_of(v).dtype == QTN_FLOAT32; }
  bool is_8bit(graph::ValueId v) const;

  // Where they lie.
  /// Contiguous real numbers (or plain integers of shape arithmetic).
  SlotId real(graph::ValueId v);
  /// The same under any strides: as they were computed.
  SlotId any_real(graph::ValueId v);
  /// The same as an image without gaps.
  SlotId real_image(graph::ValueId v);
  /// As it was computed where the elements of its rows lie side by side.
  SlotId side_by_side(graph::ValueId v);
  /// 8-bit integers under any strides.
  SlotId integer(graph::ValueId v);
  /// Gives a value the real numbers computed for it, through its quantizer where it has one.
  void set_real(graph::ValueId v, SlotId computed);
  /// Where the integers of a value lie that are not computed so: as an image where nodes read it as one.
  Shape grid_strides(graph::ValueId v) const;
  void set_integer(graph::ValueId v, SlotId computed) { integer_[at(v)] = computed; }

  // Slots.
  const SlotForm &form(SlotId s) const { return plan_.slots[static_cast<std::size_t>(s)].form; }
  Edge edge(SlotId s) const { return {s, form(s)}; }
  SlotId add_slot(SlotForm slot_form);
  SlotId add_constant(const Tensor &constant);
  /// A graph input, which lies elsewhere in every run, is copied first.
  SlotId add_view(SlotId of, const View &view);
  /// The slot of an edge that sees it in another shape, in that one.
  SlotId seen(const Edge &e) {
    return e.form.shape == form(e.slot).shape ? e.slot : add_view(e.slot, {e.form.shape, e.form.strides, 0});
  }
  SlotId plain_slot(qdtype dtype, const Shape &shape);
  SlotId real_slot(const Shape &shape, const Shape &strides);
  /// For an output that holds integers.
  SlotId integer_output(graph::ValueId v, const Shape &shape, const Shape &strides);
  /// Lets a slot be a place in y, which the step that fills it then writes.
  void place_in(SlotId s, SlotId y, const View &place);
  /// The same elements without gaps, in the order in which they lie.
  SlotId dense(SlotId s);
  SlotId contiguous(SlotId s);
  SlotId image(SlotId s);
  SlotId copied(SlotId from, const Shape &strides);
  bool is_dense_image(SlotId s) const;
  /// Whether every run binds it to memory of the caller, after which kernels of integers may not read.
  bool is_integer_input(SlotId s) const;

  // Steps.
  void add_step(StepPtr step);
  /// Index of the step that fills a slot; -1 for inputs and constants.
  std::ptrdiff_t producer(SlotId s) const;
  /// The step that computes value v as a dense image in slot s, or contiguous rows of floats, if so many nodes read it
  /// and none has yet: it may be made to compute more, where this is the only one, or elsewhere.
  Step *open_step(graph::ValueId v, SlotId s, std::size_t readers = 1) const;

  // Operands in 8 bits that are made once for all nodes that read a value so.
  std::map<std::pair<graph::ValueId, ops::OwnGrid>, DynamicOperand> own_grids;
  using Borders = std::pair<ops::Window::Dims, ops::Window::Dims>;  // at the beginning and the end of axes
  std::map<std::tuple<graph::ValueId, ops::OwnGrid, Borders>, DynamicOperand> own_image_grids;
  std::map<std::pair<graph::ValueId, std::size_t>, BlocksOperand> in_blocks;  // by the length of a block

  /// Concatenations of which each begins as the longest one does, as in a dense block: they are its first channels.
  struct Prefixes {
    std::vector<graph::ValueId> longest;
    std::vector<std::size_t> lengths;  ///< of all of them, in inputs
    SlotId y = kNoSlot;                ///< the longest one, of which so many parts have their place
    std::size_t placed = 0;
  };
  /// Those to which the node under way, a Concat, belongs; null where there are no others.
  Prefixes *prefixes();

 private:
  bool has_weights_of_its_own() const;
  bool is_read_as_image(graph::ValueId v) const;
  bool lower_quantize_tail(graph::ValueId v, SlotId computed);
  static std::size_t at(graph::ValueId v) { return static_cast<std::size_t>(v); }
  SlotId root(SlotId s) const { return plan_.slots[static_cast<std::size_t>(s)].root; }
  SlotId converted(SlotId from, SlotForm to, StepPtr (*make)(const Edge &, const Edge &, Isa));
  SlotId flipped(SlotId from, const QuantizerPtr &grid);
  /// An output of the graph: in integers where it has a grid and inputs came so, else real numbers.
  SlotId outgoing(graph::ValueId v);

  Weights &weights_;
  graph::Inferred known_;
  Plan plan_;
  std::vector<SlotId> real_, integer_;                          // by value
  std::vector<SlotId> contiguous_real_, real_image_;            // copies of real_ where it lies otherwise
  std::vector<std::size_t> readers_;                            // of a value
  std::vector<bool> read_as_image_;                             // by value
  std::optional<std::map<graph::ValueId, Prefixes>> prefixes_;  // by the first input
  const graph::Node *node_ = nullptr;
  std::size_t node_index_ = 0;
  bool integers_ = false;  // inputs on a grid come as its integers
};

}  // namespace qtn::runtime
