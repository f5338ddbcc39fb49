// SPDX-License-Identifier: Apache-2.0
// What an operator is: its schema, shapes, float run, behaviour on quantized tensors, and older ONNX forms.
//
// One operator, one file in a room of this folder, one row in ops.inc, which says which room; what several operators
// share stands in common. Attributes and inputs are those of ONNX opset 21.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/scratch.hpp"
#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::ops {

/// What follows from attributes, shapes and constants alone: a caller that repeats a call keeps it. See prepared.hpp.
struct Prepared {
  virtual ~Prepared() = default;
};

/// One application of an operator. An absent optional input is nullptr. During shape inference an input has data only
/// if it is a constant.
struct Call {
  const Attrs &attrs;
  std::span<const Tensor *const> inputs;
  std::size_t output_count = 1;
  const Prepared *prepared = nullptr;  ///< OpDef::prepare() of this call; nullptr: run() and backward() prepare
  Scratch *scratch = nullptr;          ///< for run(), where it is called again and again; nullptr: memory of its own

  /// The input, or nullptr where it is absent.
  const Tensor *in(std::size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
};

struct TensorType {
  qdtype dtype;
  Shape shape;
};

/// A node as an operator set wrote it. upgrade() rewrites it to the form of opset 21, if it was another.
struct OldNode {
  std::string &op;
  Attrs &attrs;
  int opset;
  std::size_t input_count;
  std::map<std::size_t, Tensor> constants;  ///< inputs that attributes became: position -> value
  std::vector<std::ptrdiff_t> inputs;       ///< new position -> old position, -1: absent; empty: all stay in place
};

/// Some inputs of an operator that follow one another, or every other of them.
struct InputRange {
  std::size_t first, count, step = 1;
  bool holds(std::size_t i) const { return i >= first && (i - first) % step == 0 && (i - first) / step < count; }
};

/// Bounds of an activation fused onto output 0, in real values; infinite where open.
struct Clamp {
  float lo, hi;

  bool changes_nothing() const { return std::isinf(lo) && std::isinf(hi); }
};

/// How a number that follows from the outputs of a call changes with them, and what the call left behind.
struct Backward {
  const Call &call;  ///< as it ran; inputs that are not constant have data only where the operator keeps them
  std::span<const Tensor> outputs;  ///< with data only where the operator keeps them
  std::span<const Tensor> dy;       ///< one gradient for each output, contiguous; without data: zero
  Scratch &scratch;                 ///< so that a training step allocates nothing
};

/// What of a run its gradient reads.
struct Kept {
  InputRange inputs = {0, 0};
  bool outputs = false;
};

/// An operator that sums products of input 0 and weights, input 1, and adds a bias, input 2, where it takes one.
struct ProductForm {
  bool convolution = false;  ///< weights are [.., .., places ...], of three axes or more; else a matrix
  bool has_bias = true;

  /// The axis of the weights that counts output channels.
  std::size_t (*channel_axis)(const Attrs &attrs);

  /// Groups whose channels share a place along that axis; nullptr: always one.
  std::int64_t (*channel_groups)(const Attrs &attrs) = nullptr;

  /// What the attributes add to sums of products ("transA is 1"), or empty; nullptr: nothing.
  std::string (*addition)(const Attrs &attrs) = nullptr;
};

/// The domain of the operators that ONNX Runtime adds to ONNX's own.
inline constexpr const char *kMicrosoft = "com.microsoft";

/// That of operators which only this library has. Files bring them along as functions of ONNX's own.
inline constexpr const char *kOwnDomain = "qtensor";

inline constexpr std::size_t kVariadic = 1 << 20;
inline constexpr InputRange kAllInputs{0, kVariadic};

/// What an operator makes of plain integers, or of real numbers.
enum class Coding { none, to_integers, to_reals };

struct OpDef {
  const char *name;
  const char *domain = "";             ///< "": ONNX's own
  std::size_t min_inputs, max_inputs;  ///< variadic: max_inputs = kVariadic
  std::size_t max_outputs;
  std::span<const AttrSpec> attrs;

  /// Throws QTN_EINVAL or QTN_EUNSUPPORTED where attributes, or what is given and asked for, are refused whatever the
  /// types and shapes are, so that files say so when they are loaded. nullptr: infer() says it.
  void (*check)(const Call &call) = nullptr;

  /// infer() and run() take elements of types that are only stored as they are. Other operators see float32 in place of
  /// narrow floats, and float32 that they make becomes the narrow float that output_dtype says.
  bool any_type = false;

  /// Types of the outputs, from types (and constant values) of the inputs of a checked call. Throws QTN_ESHAPE,
  /// QTN_EDTYPE, QTN_EINVAL or QTN_EUNSUPPORTED with the values in the message, prefixed by the operator's name ("Conv:
  /// weight ..."). Go through infer_op(), which also refuses outputs that no memory could hold.
  std::vector<TensorType> (*infer)(const Call &call);

  /// Computes into outputs allocated as infer() said. Operands are contiguous and not quantized, except that an
  /// operator that moves() also takes integers of any quantizer, and any strides on both sides.
  void (*run)(const Call &call, std::span<Tensor> outputs);

  /// nullptr: there is nothing to prepare.
  std::unique_ptr<Prepared> (*prepare)(const Call &call) = nullptr;

  /// Each output element depends on the inputs' elements at the same (broadcast) place only, so that one quantized
  /// operand with scalar constants beside it is a table of 256 entries.
  bool elementwise = false;

  /// Inputs from this one on are one number each, whatever shape the first ones have.
  std::size_t numbers_from = kVariadic;

  /// Whether (under these attributes) outputs are inputs' elements moved about or chosen among: integers pass through
  /// unchanged and all quantized operands share one quantizer. nullptr: never.
  bool (*moves)(const Attrs &attrs) = nullptr;

  /// Between plain integers and the real numbers of the grid that inputs 1 and 2 say.
  Coding coding = Coding::none;

  /// Results of a quantized operand lie on its grid, although not all of them are elements of it (Relu's zeros).
  bool keeps_grid = false;

  /// The inputs whose elements are moved; the others say how (Pad's pads, Where's condition).
  InputRange moved = {0, 1};

  /// The meaning of the operator on quantized tensors where that is not "dequantize, run, quantize": exact integer
  /// accumulation and one rounding (see requantization.hpp). Inputs are contiguous; the output is allocated and carries
  /// its quantizer, or is float32 (then without the clamp). False, and nothing written: these operands or attributes
  /// have the generic meaning only. nullptr: all have.
  bool (*run_quantized)(const Call &call, const Tensor &output, const Clamp *clamp) = nullptr;

  /// The chain rule in float32: writes the gradient with respect to input i into dx[i], contiguous and of that input's
  /// shape, over what was there; dx without data are not wanted. Sums are added in an order that does not depend on the
  /// number of threads. nullptr: the operator has no gradient.
  void (*backward)(const Backward &run, std::span<const Tensor> dx) = nullptr;
  Kept keeps = {};  ///< for backward

  /// The output is the sum of the inputs, whose gradients are its own. backward() leaves a dx alone that is dy itself.
  bool sum = false;

  /// nullptr: it is no sum of products.
  const ProductForm *product = nullptr;

  /// Inputs that are learned where they are constants. Training may decay weights; offsets, and the scales of
  /// normalizations, it does not.
  InputRange weights = {0, 0}, offsets = {0, 0};

  /// The running mean and variance, where the operator normalizes each channel, axis 1, by them.
  InputRange statistics = {0, 0};

  /// How many of the first inputs run_quantized() takes as activations, where there are no weights.
  std::size_t activations = 1;

  /// Whether each channel, axis 1, becomes means over its places or windows of them. `axes`: input 1 where it is a
  /// constant, else nullptr. nullptr: never.
  bool (*averages_places)(std::size_t rank, const Tensor *axes) = nullptr;

  /// The input that fills places to which nothing is moved; kVariadic: there are none.
  std::size_t fill = kVariadic;

  /// Moved operands may be on grids of their own, which lead to the result's.
  bool joins = false;

  /// f(a x) = a f(x) for every a above 0, channel by channel.
  bool homogeneous = false;

  /// Output 0 holds the elements of input 0 in their order, under another shape or the same.
  bool keeps_order = false;

  /// Shapes of the inputs are all that is read.
  bool reads_shapes = false;

  /// Inputs whose elements, and not their shapes alone, say the shapes of the outputs: where all of these that are given
  /// have data, infer() says the shapes; where one has none, it throws NotKnown, if these attributes need it.
  InputRange shapes_from = {0, 0};

  /// For operators that know how large their outputs are only when they have found them (NonZero, Unique): outputs of a
  /// checked call whose inputs all have data, of any strides. Does what infer() and run() do, at the price of one of
  /// them; infer() throws NotKnown where an input of shapes_from has no data. nullptr: infer() is cheap.
  std::vector<Tensor> (*make)(const Call &call) = nullptr;

  /// About how many multiplications or comparisons each element of the outputs takes, by the shapes of the inputs.
  /// nullptr: one.
  double (*work)(const Call &call) = nullptr;

  /// Between which all outputs lie, where that does not depend on the inputs.
  std::optional<Clamp> bounds = {};

  /// The type of an output, for graphs of unknown shapes; `moved` is that of the first moved input. nullptr: the same.
  qdtype (*output_dtype)(const Attrs &attrs, std::size_t output, qdtype moved) = nullptr;

  /// Rewrites what older opsets said otherwise, to another operator where that says the same; nullptr where the operator
  /// never changed.
  void (*upgrade)(OldNode &node) = nullptr;
};

/// The type of an output for graphs of unknown shapes: what OpDef::output_dtype says, or that of the first moved input.
inline qdtype made_dtype(const OpDef &op, const Attrs &attrs, std::size_t output, qdtype moved) {
  return op.output_dtype ? op.output_dtype(attrs, output, moved) : moved;
}

/// The operator of that name, or nullptr. No two domains share a name here.
const OpDef *find_op(std::string_view name);

/// The same where it belongs to that domain, or nullptr.
const OpDef *find_op(std::string_view domain, std::string_view name);

/// Whether upgrade_node() makes others of it.
bool is_retired(std::string_view name);

/// Every operator, in the order of ops.inc.
std::span<const OpDef *const> all_ops();

/// Checks input count, output count and attributes against the schema; throws QTN_EINVAL, and what OpDef::check does.
void check_call(const OpDef &op, const Call &call);

/// check_call(), infer(), and output shapes whose sizes do not overflow.
std::vector<TensorType> infer_op(const OpDef &op, const Call &call);

/// OpDef::run of an inferred call, whatever types its operands are stored in.
void run_into(const OpDef &op, const Call &call, std::span<Tensor> outputs);

/// Infers, allocates and runs on float or plain integer tensors of any strides.
std::vector<Tensor> run_op(const OpDef &op, const Call &call);

/// The operator's meaning on tensors of which some are quantized: integers moved where it moves them; run_quantized
/// where it has one and all that must be quantized is; else dequantize, run, and quantize each output that has a
/// quantizer. `quantizers` holds one entry for each output, nullptr for a float result. Output 0 is clamped before
/// rounding.
std::vector<Tensor> run_quantized_op(const OpDef &op, const Call &call, std::span<const QuantizerPtr> quantizers,
                                     const Clamp *clamp = nullptr);

bool moves(const OpDef &op, const Attrs &attrs);

/// In place: elements of a contiguous tensor of numbers below or above the bounds become the bounds. NaN stays.
void clamp_elements(const Tensor &y, const Clamp &clamp);

/// Rewrites a node to the form of opset 21, its name too where the operator was renamed (Upsample).
/// Operators that this library does not know stay as they are.
void upgrade_node(OldNode &node);

#define QTN_OP(name) extern const OpDef k##name;
#include "ops/ops.inc"
#undef QTN_OP

}  // namespace qtn::ops
