// SPDX-License-Identifier: Apache-2.0
// The native engine's steps. Each function makes one, for operands whose layout the lowering has already arranged.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "base/cpu.hpp"
#include "base/lazy.hpp"
#include "base/requantize.hpp"
#include "graph/graph.hpp"
#include "kernels/activation/activation.hpp"
#include "kernels/gemm_blocks/gemm_blocks.hpp"
#include "ops/common/channel_line.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/window.hpp"
#include "runtime/step.hpp"

namespace qtn::kernels {
struct GemmKernel;
}

namespace qtn::runtime {

/// What a slot looks like before a context binds it.
struct SlotForm {
  qdtype dtype = QTN_FLOAT32;
  Shape shape, strides;
  QuantizerPtr quantizer;
};

/// Weights in a kernel's own format, made once for a session.
struct PackedWeights {
  AlignedBuffer bytes;
  std::vector<std::size_t> offsets;  ///< of each group

  /// What packs need not say that it will be shared.
  operator std::shared_ptr<const PackedWeights>() && { return std::make_shared<const PackedWeights>(std::move(*this)); }
};
using PackedPtr = std::shared_ptr<const PackedWeights>;

/// A linear node's constants as integers, ready to be packed: weight [out][in] with taps before channels. Plans for other
/// shapes need the other members only, for which nobody has to read all weights again.
struct LinearWeights {
  Lazy<Tensor> weight;             ///< [groups][out][k], contiguous int8; that of the graph where it has this order
  std::vector<std::int32_t> bias;  ///< [groups * out], zero point of x folded in
  std::vector<float> multiplier;   ///< [groups * out]
  std::size_t groups, out, k;      ///< per group
  std::size_t taps = 1;            ///< in k
  Tensor tap_sums;                 ///< int32 [groups * out][taps], of the weights of a tap
  bool sums_fit = true;            ///< int32 holds every sum that activations of 8 bits can lead to
  const kernels::GemmKernel *kernel = nullptr;  ///< gemm_kernel() of these, where it is known

  const std::int8_t *filter(std::size_t o) const { return weight->as<const std::int8_t>() + o * k; }
};
/// Where the integers of Conv, Gemm and MatMul come from; finish_weights() says the rest.
LinearWeights linear_weights(const graph::Graph &g, const graph::Node &node);
/// The same of a tensor of bytes: filters of convolutions, or a matrix; uint8 is read as the int8 grid 128 further down.
LinearWeights linear_weights(const Tensor &weight, std::size_t channel_axis, std::size_t groups);
/// Biases, multipliers and sums for the integers of `w`, whose outputs are so many channels over and over.
void finish_weights(LinearWeights &w, const Tensor *bias, std::size_t channels, const Quantizer &x, const Quantizer &wq,
                    const Quantizer *y);

/// A float node's constants as the graph has them. Filters [groups * out][channels][taps] are read with taps before
/// channels, a matrix is [k][out].
struct RealWeights {
  Tensor weight, bias;         ///< contiguous float32; no bias: zeros
  std::size_t groups, out, k;  ///< per group, in elements
  std::int64_t taps = 1;
  bool is_matrix = false;

  /// The weights with taps before channels.
  Tensor in_order() const;
};

/// Asks for the packed weights of a node, packing at the first call for each form that the node's steps may want.
using PackCache = std::function<PackedPtr(std::size_t form, const std::function<PackedPtr()> &pack)>;

struct Edge {
  SlotId slot;
  SlotForm form;
};

/// x: images or, for Gemm and MatMul, rows of k bytes `x_row` apart; y uint8 or float32, channels last.
StepPtr make_conv(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                  const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache);
/// The same of windows of 3x3 with fewer products; nullptr where there are none, or a product by kernels of `isa` is faster.
StepPtr make_winograd_conv(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                           const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache);
StepPtr make_depthwise(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                       const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache);
StepPtr make_gemm(const Edge &x, const Edge &y, std::size_t rows, const LinearWeights &w, const QuantizedRange &range,
                  const ops::Clamp &clamp, Isa isa, const PackCache &cache);

/// The same in float32.
StepPtr make_real_conv(const Edge &x, const Edge &y, const ops::Window &window, const RealWeights &w,
                       const ops::Clamp &clamp, Isa isa, const PackCache &cache);
StepPtr make_real_depthwise(const Edge &x, const Edge &y, const ops::Window &window, const RealWeights &w,
                            const ops::Clamp &clamp, Isa isa, const PackCache &cache);
StepPtr make_real_gemm(const Edge &x, const Edge &y, std::size_t rows, const RealWeights &w, const ops::Clamp &clamp,
                       Isa isa, const PackCache &cache);

/// The sums over taps of a transposed convolution, of floats: what each pixel of x gives each tap of each filter, [pixels of
/// x][taps][filters], and y, an image without gaps. The window goes from y to x; it is flat. `bias` may be without data.
StepPtr make_overlap_add(const Edge &products, const Edge &y, const ops::Window &transposed, const Tensor &bias,
                         const ops::Clamp &clamp, Isa isa);

/// A matrix of integers as the graph has it, [k][out] where is_matrix, else [out][k]; bias as in RealWeights.
struct CodedWeights {
  Tensor weight, bias;
  std::size_t out, k;
  bool is_matrix;
};
/// Whether a product of floats reads them as they are, and not as floats that a session makes once: where they are more
/// than what is in cache anyway, a kernel has their form, and there is such a kernel.
bool stays_coded(const CodedWeights &w, Isa isa);
StepPtr make_coded_gemm(const Edge &x, const Edge &y, std::size_t rows, const CodedWeights &w, const ops::Clamp &clamp,
                        Isa isa, const PackCache &cache);

/// Floats [rows][k], and what they come to as int8 with a scale for each block of a row.
struct BlocksOperand {
  SlotId real, q, scales, sums;  ///< of kernels::BlocksRows
  std::size_t rows;
};
StepPtr make_block_quantize(const BlocksOperand &x, const kernels::BlocksForm &form, Isa isa);
/// MatMulNBits of these, whose inputs from 1 on are constants.
StepPtr make_block_product(const BlocksOperand &x, const Edge &y, const ops::Call &constants, const ops::Clamp &clamp,
                           Isa isa, const PackCache &cache);

/// Matrices [..., M, K] by [..., K, N] of floats, under any strides, but those of a row of the left one lie side by side.
StepPtr make_real_matmul(const Edge &a, const Edge &b, const Edge &y, const ops::Clamp &clamp, Isa isa);

/// What attention does to scores s before their Softmax: s = f(s, other), f(other, s), or where `other` holds, s, else
/// `filler`, or the reverse.
struct ScoreTerm {
  enum Kind { add, sub, mul, div, where } kind;
  Shape stack;        ///< the axes of the scores before those of their matrices, as this term sees them
  bool scores_first;  ///< of the two operands
  Edge other;         ///< float, or bool for where; broadcasts over scores; elements of its rows lie side by side
  std::optional<Edge> filler{};
};
/// [..., D, T] and [..., T, E].
struct KeysAndValues {
  Edge keys, values;
};
class AttentionProducts;
/// softmax(terms(q k)) v for matrices [..., M, D], [..., D, T] and [..., T, E] of floats under any strides, but those of
/// a row of q and of y lie side by side. All queries of a head by all keys are in no place at once: threads take some
/// rows at a time. The bits are those of the steps that it stands for, but where one factor stands for several. Keys and values may come in several parts, one
/// after the other, where products are those of floats. `guarded`: see ScoreChange.
StepPtr make_attention(const Edge &q, const std::vector<KeysAndValues> &parts, const Edge &y,
                       std::vector<ScoreTerm> terms, bool guarded, std::unique_ptr<AttentionProducts> products,
                       Isa isa);

/// Matrices [..., M, K] by [..., K, N] of uint8, under any strides, but those of a row of the left one lie side by side,
/// and kReadSlack bytes behind it may be read; y contiguous, uint8 or float32. None is empty, and 3 * 255 * 128 * K is
/// an int32.
StepPtr make_matmul(const Edge &a, const Edge &b, const Edge &y, Isa isa);

/// Bytes of a tensor that others take the place of.
struct Placement {
  std::size_t at, bytes;
};
/// x with these bytes of the updates, of which those of each placement follow on those before. All lie contiguous.
StepPtr make_placement(SlotId x, SlotId updates, SlotId y, std::vector<Placement> placements);

/// Rows of a table of 8-bit integers, per tensor or by row, by int64 or int32 indices, as floats without gaps.
StepPtr make_embedding(const Tensor &table, const Edge &indices, const Edge &y, Isa isa);

/// Floats, and what they come to on the uint8 grids that they give themselves.
struct DynamicOperand {
  Edge real, q;          ///< both contiguous, or images of which q may have borders
  SlotId scales, zeros;  ///< float and int32: one for each row, along the last axis, or one for all
  bool by_row;
  std::ptrdiff_t inside = 0;  ///< bytes of q before what lies within its borders
};
/// Borders get the zero point. `who` begins the message where floats have no grid.
StepPtr make_dynamic_quantize(const char *who, const DynamicOperand &x, Numerics numerics, Isa isa);

/// Weights of a product whose x has such a grid.
struct DynamicWeights {
  LinearWeights integers;           ///< multiplied by their scales, without biases
  std::vector<float> bias;          ///< [groups * out]; empty: none
  std::vector<std::int32_t> zeros;  ///< zero points [groups * out]; empty: all 0, as they are where rows have grids
};
/// To float32; x and y as for the functions above, with windows that have no borders of their own.
StepPtr make_dynamic_conv(const DynamicOperand &x, const Edge &y, const ops::Window &window, const DynamicWeights &w,
                          const ops::Clamp &clamp, Isa isa, const PackCache &cache);
/// Without a bias; windows are flat.
std::unique_ptr<TailedStep> make_dynamic_depthwise(const DynamicOperand &x, const Edge &y, const ops::Window &window,
                                                   const LinearWeights &w, const ops::Clamp &clamp, Isa isa,
                                                   const PackCache &cache);
StepPtr make_dynamic_gemm(const DynamicOperand &x, const Edge &y, std::size_t rows, const DynamicWeights &w,
                          const ops::Clamp &clamp, Isa isa, const PackCache &cache);

enum class Pooling { max, average };
StepPtr make_pool(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
                  const QuantizedRange &range, Isa isa);

/// Floats of an output image from the taps of an input image; an average counts the taps inside, or all.
StepPtr make_real_pool(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
                       const ops::Clamp &clamp, Isa isa);

/// Constants of a BatchNormalization, float32 for each channel.
struct RealNormalization {
  Tensor scale, shift, mean, variance;
  double epsilon;

  ops::ChannelLine line(std::size_t channel) const;
};
/// x is an image, y one without gaps.
StepPtr make_real_normalize(const Edge &x, const Edge &y, const RealNormalization &n, const ops::Clamp &clamp);
/// x and y are contiguous, channels are their second axis of three or more.
StepPtr make_normalize_planes(const Edge &x, const Edge &y, const RealNormalization &n, const ops::Clamp &clamp);

/// Constants of a GroupNormalization, or with a group for each channel an InstanceNormalization; float32.
struct GroupNormalization {
  Tensor scale, shift;  ///< for each channel, or for each group
  std::size_t groups;
  double epsilon;
};
/// The same edges.
StepPtr make_group_normalize(const Edge &x, const Edge &y, const GroupNormalization &n, const ops::Clamp &clamp);

/// x + b on the blocks of a step whose output x was. Rows of b are `row` elements apart: TailedStep::row_of().
TailPtr make_real_add_tail(SlotId b, std::ptrdiff_t row, const ops::Clamp &clamp);
/// The same of one row for all.
TailPtr make_real_bias_tail(SlotId row, const ops::Clamp &clamp);

using RealActivation = std::variant<kernels::Activation, kernels::Swish, kernels::ExponentialUnit>;
TailPtr make_activation_tail(const RealActivation &activation, Isa isa);
/// x, times its slope below zero: float32, one for each column of the blocks or one for all.
TailPtr make_leaky_tail(const Tensor &slopes, Isa isa);

/// y = a + b, a - b or a * b under broadcasting; operands may have any strides.
enum class Binary { add, sub, mul };
StepPtr make_binary(const Edge &a, const Edge &b, const Edge &y, Binary kind, const QuantizedRange &range, Isa isa);

/// The same on the blocks of a step whose output a was. Rows of b are `row` elements apart: TailedStep::row_of(). Swapped: b op a.
TailPtr make_binary_tail(const SlotForm &a, const Edge &b, std::ptrdiff_t row, const SlotForm &y, Binary kind,
                         bool swapped, const QuantizedRange &range, Isa isa);

/// y = table[x], of dense operands with the same strides.
StepPtr make_table(const Edge &x, const Edge &y, const std::array<std::uint8_t, 256> &table, Isa isa);
TailPtr make_table_tail(const std::array<std::uint8_t, 256> &table, Isa isa);

/// Blocks of floats, held by a step that makes matrices, to those of q, which is contiguous.
TailPtr make_quantize_tail(const SlotForm &q, Isa isa);

/// Float to 8-bit and back; the integer side is an image, or both are contiguous.
StepPtr make_quantize(const Edge &x, const Edge &q, Isa isa);
StepPtr make_dequantize(const Edge &q, const Edge &x, Isa isa);

/// The same elements under other strides.
StepPtr make_copy(const Edge &from, const Edge &to);
/// Between uint8 and int8, of which each is the other 128 further: `from` and `to` are laid out alike, without gaps.
StepPtr make_flip(const Edge &from, const Edge &to, Isa isa);

/// The operator's own run on float or moved operands, with an optional clamp of a float result afterwards.
struct OperandRefs {
  std::vector<SlotId> inputs;  ///< kNoSlot: absent
  std::vector<SlotId> outputs;
};
StepPtr make_run(const graph::Node &node, const OperandRefs &refs);

/// The operator's meaning on quantized tensors by its definition (ops::run_quantized_op): right for everything, fast
/// for nothing.
StepPtr make_definition(const graph::Node &node, const OperandRefs &refs, std::vector<QuantizerPtr> quantizers);

/// Shows a slot to the context's watch as a value of the graph.
StepPtr make_observe(SlotId slot, graph::ValueId value);

/// A float slot seen through a quantizer that no kernel holds (16-bit, per channel): x = dequantize(quantize(x)).
StepPtr make_round_trip(SlotId from, SlotId to, QuantizerPtr quantizer);

}  // namespace qtn::runtime
