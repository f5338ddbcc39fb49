// SPDX-License-Identifier: Apache-2.0
// Nodes in float32 for which the native engine has steps of its own, or which it runs on images as they lie: channels
// last, as convolutions leave them.
#pragma once

#include <map>

#include "runtime/attention.hpp"
#include "runtime/forms.hpp"
#include "runtime/phases.hpp"
#include "runtime/steps/heads.hpp"

namespace qtn::runtime {

class RealLowering : protected Forms {
 protected:
  using Forms::Forms;

  /// False, and nothing done: the operator's own run on contiguous operands is what there is.
  bool lower_real();

  /// All of a formula, of which the node under way is the last product.
  void lower_attention(const AttentionFormula &formula);

  /// Where the outputs of the node under way lie in an operand of this form, if all they do is to look at it.
  std::optional<std::vector<View>> views(const SlotForm &x) const;
  /// The same as slots.
  bool lower_as_views(SlotId x, std::vector<SlotId> &result);

  std::vector<const Tensor *> constant_operands(std::vector<Tensor> &storage) const;
  std::vector<ops::TensorType> output_types() const;

  /// The cache for one part of a node's weights, where it has several.
  PackCache pack_cache(std::size_t part = 0, std::size_t parts = 1);
  ops::Clamp clamp() const;

  /// Channels of a convolution to where the outputs of a phase belong.
  void interleave(SlotId part, std::ptrdiff_t channel, const Phase &all, SlotId y, const Phase &phase,
                  const ops::Window &window);

  /// The node's pictures side by side along their channels in y, part_of(value) in that order: the steps that compute
  /// them write into y where this node alone reads them; others are copied.
  void join_channels(SlotId y, const std::function<SlotId(graph::ValueId)> &part_of);

  /// ReduceMean over all spatial axes of a picture and no other.
  bool reduces_pictures() const;

 private:
  bool is_real(graph::ValueId v) const;
  /// A contiguous float32 constant, or one without data.
  Tensor real_constant(graph::ValueId v);

  bool lower_embedding();
  bool lower_real_conv();
  bool lower_real_recurrent();
  bool lower_real_heads();
  bool lower_onnx_attention();
  bool lower_multi_head_attention();
  bool lower_group_query_attention();
  bool lower_real_transposed();
  bool lower_real_matrix();
  bool lower_blocks();
  bool lower_real_matmul();
  bool lower_real_pool();
  bool lower_real_normalization();
  bool lower_real_add();
  bool lower_real_bias();
  bool lower_real_concat();
  bool lower_real_view();
  bool lower_on_pictures();

  void add_real_convolution(SlotId x, SlotId y, const ops::Window &window, const RealWeights &w,
                            const PackCache &cache);
  /// The node's output o, or no value.
  graph::ValueId wanted(std::size_t o) const;
  /// Whether these are floats, and some of them, where they are given.
  bool has_real_inputs(std::initializer_list<std::size_t> inputs) const;
  Edge joined_heads(const Edge &x, graph::ValueId past, std::size_t o, graph::ValueId bias = graph::kNoValue,
                    std::size_t first = 0);
  void lower_heads(HeadAttention attention);
  /// Rows in 8 bits; made once for all nodes that read x in such blocks.
  BlocksOperand in_blocks(graph::ValueId x, const kernels::BlocksForm &form);
  SlotId side_by_side(graph::ValueId v);
  SlotId real_slot(const Shape &shape, const Shape &strides);
  SlotId channels_last(graph::ValueId v, std::size_t rank);
  SlotId channels_as_last_axis(SlotId picture, Shape shape);

  std::map<std::pair<graph::ValueId, std::size_t>, BlocksOperand> in_blocks_;  // by x and the length of a block
};

}  // namespace qtn::runtime
