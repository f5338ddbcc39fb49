// SPDX-License-Identifier: Apache-2.0
// Which nodes of a quantized graph run on integers from end to end, and in which manner.
#pragma once

#include "graph/graph.hpp"

namespace qtn::graph {

enum class IntegerForm {
  none,        ///< float: operands are dequantized, the result is quantized where its value has a quantizer
  linear,      ///< is_linear() of 8-bit activations by constants of 2 to 8 bits; the result may be float
  dynamic,     ///< DynamicQuantizeMatMul by constant weights: float activations, sums of integers
  recurrent,   ///< LSTM, GRU, RNN by constant weights: floats in and out, products of integers
  arithmetic,  ///< Add, Sub, Mul, means: 8-bit activations in and out
  definition,  ///< what no kernel takes, by the operator's definition on quantized tensors, which is slow
  table,       ///< elementwise, one 8-bit operand and scalar constants: 256 entries
  move,        ///< elements moved or chosen, all under one quantizer
  edge,        ///< passes_integers(): plain integers become those of a grid, or these plain ones
};

/// Sums of this many products of 255 * 255, of two activations, stay in int32; of 255 * 128, of weights; and of so many
/// by weights that are small enough, which scales make them.
inline constexpr std::int64_t kDynamicDepth = 33025, kSureDepth = 65000, kWeightDepth = std::int64_t{1} << 20;

IntegerForm integer_form(const Graph &g, const Node &node);

/// Why a node has no such form, as users read it: "its weights have 3 dimensions"; empty where it has one.
std::string float_reason(const Graph &g, const Node &node);

/// A per-tensor uint8 or int8 quantizer: what activations of integer kernels carry.
bool is_8bit_activation(const QuantizerPtr &q);

/// Sums of products by weights: Conv, ConvTranspose, Gemm, MatMul.
bool is_linear(const Node &node);

/// DynamicQuantizeMatMul and DynamicQuantizeConv: constant integers, input 1, with their scales in input 2, by floats that get a grid in the run.
bool is_dynamic_product(const Node &node);

/// Whether the operator was registered with one.
bool has_quantized_run(const Node &node);

/// Whether the node is one of these which slides over places.
bool is_convolution(const Node &node);

/// Whether kernels take weights of so many dimensions.
bool takes_rank(const Node &node, std::size_t rank);

/// What the attributes of a linear node add to sums of products; see ops::ProductForm.
std::string product_addition(const Node &node);

/// Why products of a recurrent layer do not take such weights as integers: of up to 8 bits around 0, with a scale for the
/// tensor, for each row of a gate, or for each row of each direction: a block as long as it. Empty where they do.
std::string recurrent_weight_misfit(const Tensor &weight);

/// The axis of a linear node's weight that counts output channels.
std::size_t output_channel_axis(const Node &node);

/// How many there are. For ConvTranspose the axis counts those of one group, and groups share the scales along it.
std::int64_t output_channels(const Node &node, const Shape &weight);

/// Whether what is added holds one number for each of so many output channels. As many in a column, which a Gemm also
/// takes, are one for each row.
bool is_of_channels(const Tensor &added, std::int64_t channels);

}  // namespace qtn::graph
