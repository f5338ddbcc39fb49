// SPDX-License-Identifier: Apache-2.0
// Rewrites of a graph that keep its meaning. Each leaves the graph sorted; pipelines.hpp says which run in which order.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "graph/graph.hpp"

namespace qtn::graph {

using NodeFilter = std::function<bool(const Node &)>;

/// Replaces nodes whose inputs are all constants by their results.
void fold_constants(Graph &g);

/// Each If for which `which`, by the number of its node, says a branch becomes the nodes of that.
void inline_branches(Graph &g, std::span<const std::optional<std::size_t>> which);

/// Those whose condition is a constant.
void inline_constant_branches(Graph &g);

/// A state of a Loop or Scan that every iteration hands on as it was, as exporters make of weights, becomes a captured
/// value, and captured constants become constants of bodies.
void capture_invariants(Graph &g);

/// Identity, and Dropout unless it is computed whether it drops.
bool is_identity(const Graph &g, const Node &node);

/// Readers of such nodes take the input instead; so do those of a Cast, Reshape or Expand to the type or shape that the
/// operand has in every run.
void remove_identities(Graph &g);

/// A Dropout that drops, or a BatchNormalization by the statistics of its batch; before opset 14 its outputs say so.
bool in_training(const Graph &g, const Node &node);

/// A file may have BatchNormalization and Dropout in training mode. Throws QTN_EUNSUPPORTED naming the first such node.
void require_inference(const Graph &g);

/// Such nodes become what they are when training is over, which is what a trainer trains. Throws QTN_EUNSUPPORTED where
/// something reads the statistics or the mask that they make.
void leave_training(Graph &g);

/// Folds BatchNormalization into the Conv or Gemm before it:
///     W' = W*gamma*r and b' = (b - mean)*gamma*r + beta, with r = 1/sqrt(var + eps).
/// One that stands alone becomes a multiplication and an addition of constants.
void fold_batch_norms(Graph &g);

/// The same only where the filter holds for both; those that stand alone are left.
void fold_batch_norms(Graph &g, const NodeFilter &only);

/// The same, and those that stand alone are left.
void fold_preceded_batch_norms(Graph &g);

/// Folds BatchNormalization of a matrix into MatMul by constants before it, over nodes that only make a matrix of its
/// result (LeViT), and over an addition of a constant to each column; without one, what is left is such an addition.
void fold_norms_of_columns(Graph &g);

/// What follows a Transpose or a Squeeze of an image and has a meaning on the image as well (elementwise operators,
/// Concat, Pad, Slice, Split, reductions of all places) reads the image, where no more of these nodes are left behind it
/// than were before it, and pairs that undo each other are gone. So layers meet their constants and activations, and
/// kernels images with channels on axis 1, as if no framework had put channels last.
void keep_channels_first(Graph &g);

/// An Einsum that is a product of two matrices, or of stacks of them, becomes MatMul, with Transpose and Reshape around it
/// where axes lie in another order or several of them are rows, columns or summed: products have kernels, forms on integers
/// and gradients.
void make_products_of_einsums(Graph &g);

/// A Max or a Min by one number is a Clip, which goes into the layer before it.
void make_clips_of_bounds(Graph &g);

/// Makes constants by which the result of a Conv, ConvTranspose or Gemm is multiplied or divided, or which are added to
/// it, one for all or one for each channel, part of its weights and bias.
void fold_scales(Graph &g);

/// The same only where the filter holds for both.
void fold_scales(Graph &g, const NodeFilter &only);

/// The same in front of normalizations, which are then behind a layer that takes them up.
void fold_scales_before_norms(Graph &g);

/// An Add of one value for each column of a product by constants goes in front of what divides the columns among several
/// axes (Reshape, Squeeze, Unsqueeze), so that it is the product's bias.
void bring_biases_to_products(Graph &g);

/// A ConvInteger by constants, or a MatMulInteger with one zero point for each operand, whose sums become floats is a Conv
/// or MatMul of the integers less their zero points, which has kernels. Its sums are exact up to 2^24, and rounded as
/// those of floats are beyond.
void sum_integers_in_float(Graph &g);

/// A Gemm by constants whose addend is computed is one without, and an Add: kernels take biases that are known.
void add_after_products(Graph &g);

/// Moves a Pad with zeros along spatial axes into the pads of a Conv that reads it, one with -inf into those of a MaxPool.
void fuse_pads(Graph &g);

/// Makes an Add of constants, one for each column, the bias of the DynamicQuantizeMatMul before it.
void fuse_biases(Graph &g);

/// The bounds of a Relu or a Clip with constant scalar bounds.
std::optional<ops::Clamp> clamp_of(const Graph &g, const Node &node);

/// Moves Relu and Clip with constant bounds into the clamp of the Conv, Gemm, MatMul, Add or
/// DynamicQuantizeMatMul before it; several that follow one another become one, unless nothing is within all of them.
void fuse_clamps(Graph &g);

/// The same only where the filter holds for both, and also into a BatchNormalization.
void fuse_clamps(Graph &g, const NodeFilter &only);

/// The inverse: a clamp becomes a Relu or Clip behind its node.
void separate_clamps(Graph &g);

/// Makes one node of a chain of named ones: Conv or Gemm, then BatchNormalization, Relu or Clip, or both in this order;
/// or any node that takes a clamp, or a BatchNormalization, and Relu or Clip. The result has the name of the first.
/// Throws QTN_EINVAL naming the nodes that are no such chain; the graph is then of no use. A chain whose normalization
/// is in training mode is checked, and stays: training needs its nodes.
void fuse_chain(Graph &g, std::span<const std::string_view> names);

/// Normalizations that fuse_chain() has folded are nodes again, with the statistics and weights that they had.
void restore_norms(Graph &g);

/// Clip between 0 and 6 becomes Relu, fused or not, in the nodes for which the filter holds. Changes what the network
/// computes.
void replace_relu6(Graph &g, const NodeFilter &where);

/// Where only a node that moves elements reads a value, and its results have a grid of eight bits, the value gets that
/// grid: rounding is monotonic and elements stay what they are, so that results do not change.
void round_before_moves(Graph &g);

/// What is moved off a grid of eight bits lies on it still.
void stay_on_grids(Graph &g);

/// Gives products of 8-bit activations constant int8 weights around 0 in place of unsigned ones and those with zero
/// points; int4 and int2 stay. Channels in which some leave int8 then are read once more, with what is left of them.
void center_weights(Graph &g);

/// Brings products with constants into the one form that has integer arithmetic, x * W + bias with one value of the
/// bias for each column. Gemm: alpha and beta go into constant weights and bias. MatMul of a matrix and constant
/// weights, then Add of a constant vector: Gemm.
void normalize_products(Graph &g);

/// Gelu, Swish, HardSwish and Mish that are written as formulas become these operators where no grid is in between.
void name_formulas(Graph &g);

/// The same only where the filter holds for every node of the formula.
void name_formulas(Graph &g, const NodeFilter &only);

/// The same for LayerNormalization, and for RMSNormalization, over the last axis.
void name_normalizations(Graph &g);

/// The same only where the filter holds for every node of the formula.
void name_normalizations(Graph &g, const NodeFilter &only);

/// The same for GroupNormalization.
void name_group_normalizations(Graph &g);

/// Puts a depthwise convolution by ones in front of a BatchNormalization of signals, images or volumes that nothing before it
/// can take up; folding then moves the normalization into it. The convolution takes the node's name. Returns these names.
std::vector<std::string> insert_depthwise_before_norms(Graph &g);

}  // namespace qtn::graph
