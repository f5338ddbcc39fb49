// SPDX-License-Identifier: Apache-2.0
#include "onnx/opset_forms.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "core/integer_type.hpp"
#include "onnx/onnx.hpp"
#include "onnx/qdq.hpp"
#include "ops/custom.hpp"

namespace qtn::onnx {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// An attribute that came with opset `since`. Older files leave it out, which is right if it holds its default.
struct NewAttribute {
  const char *op, *name;
  int since;
  bool (*is_default)(const Attr &value);
};

bool always(const Attr &) { return true; }
bool never(const Attr &) { return false; }
bool is_zero(const Attr &value) {
  return std::holds_alternative<std::int64_t>(value) && std::get<std::int64_t>(value) == 0;
}
/// Whether a type is float32, or absent, which means that of the scale, float32 too.
bool is_float(const Attr &value) {
  const auto *code = std::get_if<std::int64_t>(&value);
  return code && (*code == 0 || *code == QTN_FLOAT32);
}
bool is_uint8(const Attr &value) {
  const auto *code = std::get_if<std::int64_t>(&value);
  return code && (*code == 0 || *code == QTN_UINT8);
}
bool is_ones(const Attr &value) {
  const auto *list = std::get_if<std::vector<std::int64_t>>(&value);
  return list && std::all_of(list->begin(), list->end(), [](std::int64_t i) { return i == 1; });
}
bool is_outer(const Attr &value) {
  return std::holds_alternative<std::string>(value) && std::get<std::string>(value) == "DCR";
}
bool is_stretch(const Attr &value) {
  return std::holds_alternative<std::string>(value) && std::get<std::string>(value) == "stretch";
}
bool is_none(const Attr &value) {
  return std::holds_alternative<std::string>(value) && std::get<std::string>(value) == "none";
}
bool is_output_half_pixel(const Attr &value) {
  return std::holds_alternative<std::string>(value) && std::get<std::string>(value) == "output_half_pixel";
}

constexpr NewAttribute kNewAttributes[] = {
    {"AveragePool", "dilations", 19, is_ones},
    {"BatchNormalization", "training_mode", 14, is_zero},
    {"Cast", "round_mode", 24, always},
    {"Cast", "saturate", 19, always},
    {"Attention", "left_window_size", 25, never},
    {"Attention", "right_window_size", 25, never},
    {"CastLike", "round_mode", 24, always},
    {"CastLike", "saturate", 19, always},
    {"DequantizeLinear", "block_size", 21, is_zero},
    {"DequantizeLinear", "output_dtype", 23, is_float},
    {"GRU", "layout", 14, is_zero},
    {"GroupNormalization", "stash_type", 21, always},
    {"LSTM", "layout", 14, is_zero},
    {"LpPool", "ceil_mode", 18, is_zero},
    {"LpPool", "dilations", 18, is_ones},
    {"QuantizeLinear", "block_size", 21, is_zero},
    {"QuantizeLinear", "output_dtype", 21, is_uint8},
    {"QuantizeLinear", "precision", 23, is_float},
    {"QuantizeLinear", "saturate", 19, always},
    {"Range", "stash_type", 27, always},
    {"ReduceL1", "noop_with_empty_axes", 18, is_zero},
    {"ReduceL2", "noop_with_empty_axes", 18, is_zero},
    {"ReduceLogSum", "noop_with_empty_axes", 18, is_zero},
    {"ReduceLogSumExp", "noop_with_empty_axes", 18, is_zero},
    {"ReduceMax", "noop_with_empty_axes", 18, is_zero},
    {"ReduceMean", "noop_with_empty_axes", 18, is_zero},
    {"ReduceMin", "noop_with_empty_axes", 18, is_zero},
    {"ReduceProd", "noop_with_empty_axes", 18, is_zero},
    {"RNN", "layout", 14, is_zero},
    {"ReduceSumSquare", "noop_with_empty_axes", 18, is_zero},
    {"Reshape", "allowzero", 14, is_zero},
    {"Resize", "antialias", 18, is_zero},
    {"Resize", "axes", 18, never},
    {"Resize", "keep_aspect_ratio_policy", 18, is_stretch},
    {"RoiAlign", "coordinate_transformation_mode", 16, is_output_half_pixel},
    {"ScatterElements", "reduction", 16, is_none},
    {"ScatterND", "reduction", 16, is_none},
    {"Shape", "end", 15, never},
    {"Shape", "start", 15, is_zero},
    {"SpaceToDepth", "mode", 28, is_outer},
    {"Split", "num_outputs", 18, always},
};

/// Operators and optional inputs that came later than kMinSaveOpset.
struct NewForm {
  const char *op;
  int since;
  std::size_t input;  ///< first input that is new; 0: the operator itself
};
constexpr NewForm kNewForms[] = {{"AffineGrid", 20, 0},
                                 {"Attention", 23, 0},
                                 {"Attention", 24, 6},
                                 {"Bernoulli", 15, 0},
                                 {"BitCast", 26, 0},
                                 {"BitwiseAnd", 18, 0},
                                 {"BitwiseNot", 18, 0},
                                 {"BitwiseOr", 18, 0},
                                 {"BitwiseXor", 18, 0},
                                 {"BlackmanWindow", 17, 0},
                                 {"CastLike", 15, 0},
                                 {"CausalConvWithState", 27, 0},
                                 {"CenterCropPad", 18, 0},
                                 {"Col2Im", 18, 0},
                                 {"CumProd", 26, 0},
                                 {"DFT", 17, 0},
                                 {"DeformConv", 19, 0},
                                 {"GridSample", 16, 0},
                                 {"GroupNormalization", 18, 0},
                                 {"HammingWindow", 17, 0},
                                 {"HannWindow", 17, 0},
                                 {"LayerNormalization", 17, 0},
                                 {"LinearAttention", 27, 0},
                                 {"MelWeightMatrix", 17, 0},
                                 {"Pad", 18, 3},
                                 {"RMSNormalization", 23, 0},
                                 {"RotaryEmbedding", 23, 0},
                                 {"STFT", 17, 0},
                                 {"SwiGLU", 28, 0},
                                 {"TensorScatter", 24, 0},
                                 {"Trilu", 14, 0}};

[[noreturn]] void refuse(const Node &node, int opset, const std::string &what) {
  fail(QTN_EUNSUPPORTED, "node \"", node.name, "\" (", node.op->name, "): opset ", opset, " has no ", what);
}

void drop_new_attributes(Node &node, int opset) {
  for (const NewAttribute &rule : kNewAttributes) {
    if (opset >= rule.since || std::string_view(node.op->name) != rule.op) continue;
    const auto found =
        std::find_if(node.attrs.begin(), node.attrs.end(), [&](const auto &item) { return item.first == rule.name; });
    if (found == node.attrs.end()) continue;
    if (!rule.is_default(found->second)) refuse(node, opset, cat("attribute \"", rule.name, "\""));
    node.attrs.erase(rule.name);
  }
}

/// Whether a file has the operator of ONNX's name that ONNX Runtime had before, in more forms.
bool is_of_microsoft(const Node &node, int opset) {
  constexpr int kSince = 27;
  if (node.op == &ops::kLinearAttention)
    return opset < kSince || node.attrs.get_int("q_num_heads", 0) < node.attrs.get_int("kv_num_heads", 0);
  return node.op == &ops::kCausalConvWithState && (opset < kSince || node.attrs.get_int("dilation", 1) != 1);
}

void check_new_forms(const Node &node, int opset) {
  const ops::Custom *custom = ops::as_custom(*node.op);
  if (custom && !*node.op->domain && opset < custom->since_version) refuse(node, opset, "such operator");
  if (is_of_microsoft(node, opset)) return;
  for (const NewForm &rule : kNewForms) {
    if (opset >= rule.since || std::string_view(node.op->name) != rule.op) continue;
    if (rule.input == 0) refuse(node, opset, "such operator");
    if (node.inputs.size() > rule.input && node.inputs[rule.input] != kNoValue)
      refuse(node, opset, cat("input ", rule.input));
  }
}

/// A value of a string attribute that came with opset 19.
void refuse_mode(const Node &node, int opset, std::string_view op, const char *attr, const char *value) {
  if (opset < 19 && node.op->name == op && node.attrs.get_string(attr, "") == value)
    refuse(node, opset, cat(attr, " \"", value, "\""));
}

/// Axes were an attribute of reductions until opset 18, of ReduceSum until 13.
bool had_axes_attribute(std::string_view op) { return op.starts_with("Reduce") && op != "ReduceSum"; }

void reduce_axes_as_attribute(const graph::Graph &g, Node &node, int opset) {
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return;
  const graph::Value &axes = g.value(node.inputs[1]);
  if (!axes.is_constant()) refuse(node, opset, "computed axes");
  const std::vector<std::int64_t> values = int_values(axes.constant, "axes");
  if (!values.empty()) node.attrs.set("axes", values);
  node.inputs.resize(1);
}

void transform_axis_as_attribute(const graph::Graph &g, Node &node, int opset) {
  std::int64_t axis = -2;
  if (node.inputs.size() > 2) {
    const graph::Value &value = g.value(node.inputs[2]);
    if (!value.is_constant()) refuse(node, opset, "computed axis");
    axis = int_values(value.constant, "axis")[0];
    node.inputs.resize(node.inputs[1] == kNoValue ? 1 : 2);
  }
  node.attrs.set("axis", axis);
}

/// Before opset 18 parts of which the last is smaller are said by their lengths. A dimension that is not known is taken
/// for one that divides if it does for batches of one and two.
void split_by_lengths(graph::Graph &g, Node &node, int opset, const std::optional<Shape> &one,
                      const std::optional<Shape> &two) {
  if (!one || !two || one->empty() || one->size() != two->size()) return;
  const auto count = static_cast<std::int64_t>(node.outputs.size());
  const std::size_t axis = normalize_axis(node.attrs.get_int("axis", 0), one->size(), "Split");
  const std::int64_t dim = (*one)[axis];
  if (dim >= 0 && dim % count == 0 && (*two)[axis] % count == 0) return;
  if (dim < 0 || dim != (*two)[axis]) refuse(node, opset, cat(count, " unequal parts of an open dimension"));
  std::vector<std::int64_t> lengths(node.outputs.size(), dim / count + 1);
  lengths.back() = dim - lengths[0] * (count - 1);
  node.inputs.resize(2);
  node.inputs[1] = g.add_constant(node.name + "_lengths", Tensor::from_ints(lengths));
}

/// The first opset that has tensors of this type.
int first_opset(qdtype dtype) {
  if (dtype == QTN_FLOAT8E8M0) return 24;
  if (dtype == QTN_FLOAT4E2M1) return 23;
  if (is_tiny_float(dtype)) return 19;
  if (dtype == QTN_INT4 || dtype == QTN_UINT4) return 21;
  return dtype == QTN_INT2 || dtype == QTN_UINT2 ? 25 : kMinSaveOpset;
}

void check_types(const graph::Graph &g, const Node &node, int opset) {
  const auto check = [&](std::optional<qdtype> dtype, int since, const char *what) {
    if (dtype && opset < since) refuse(node, opset, cat(what, dtype_name(*dtype), "; opset ", since, " has"));
  };
  for (const auto *values : {&node.inputs, &node.outputs})
    for (const ValueId v : *values)
      if (v != kNoValue && g.value(v).dtype) check(g.value(v).dtype, first_opset(*g.value(v).dtype), "type ");
  const auto to = static_cast<qdtype>(node.op == &ops::kCast ? node.attrs.get_int("to", 0) : 0);
  check(to, first_opset(to), "type ");
  if (node.op != &ops::kQuantizeLinear && node.op != &ops::kDequantizeLinear) return;
  if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return;
  const std::optional<qdtype> grid = g.value(node.inputs[2]).dtype;
  if (grid == QTN_INT16 || grid == QTN_UINT16) check(grid, 21, "quantization to ");
}

/// The next type of the same signedness.
qdtype wider(qdtype dtype) {
  if (dtype == QTN_INT2) return QTN_INT4;
  return dtype == QTN_UINT2 ? QTN_UINT4 : plain_dtype(dtype);
}

}  // namespace

const char *domain_at(const Node &node, int opset) {
  return is_of_microsoft(node, opset) ? ops::kMicrosoft : node.op->domain;
}

void widen_constants(graph::Graph &g, int opset) {
  for (graph::Value &value : g.values) {
    if (!value.is_constant() || !value.quantizer || !is_packed_integer(value.quantizer->dtype())) continue;
    qdtype dtype = value.quantizer->dtype();
    while (is_packed(dtype) && opset < first_opset(dtype)) dtype = wider(dtype);
    value.constant = in_integer_type(value.constant, dtype);
    value.quantizer = value.constant.quantizer();
  }
}

/// Until opset 20 groups had one scale and one bias each, since then channels have. A file that says it the other way
/// is rewritten where these are constants.
void group_parameters(graph::Graph &g, Node &node, int opset) {
  const std::int64_t groups = node.attrs.get_int("num_groups", 1);
  const std::optional<Shape> x = g.value(node.inputs[0]).shape;
  for (const std::size_t i : {1, 2}) {
    const graph::Value given = g.value(node.inputs[i]);
    if (!given.shape || given.shape->size() != 1) continue;
    const std::int64_t count = (*given.shape)[0];
    if (opset < 21 && count != groups) refuse(node, opset, "scale and bias for each channel");
    if (opset < 21 || !x || x->size() < 2 || (*x)[1] == count || count < 1) continue;
    if (!given.is_constant() || (*x)[1] < count) refuse(node, opset, "scale and bias for each group");
    const Tensor of_groups = given.constant.to_contiguous();
    const std::int64_t size = (*x)[1] / count;
    const Tensor of_channels(of_groups.dtype(), {count, size});
    copy_elements(of_channels, of_groups.view({count, size}, {1, 0}));
    node.inputs[i] = g.add_constant(cat(node.name, "_input", i, "_of_channels"), of_channels.reshaped({(*x)[1]}));
  }
}

/// The grid modes were renamed with opset 20.
void rename_mode(Node &node, int opset) {
  const std::string mode = node.attrs.get_string("mode", "linear");
  if (mode == "nearest") return;
  const bool cubic = mode.ends_with("cubic");
  node.attrs.set("mode", std::string(opset < 20 ? (cubic ? "bicubic" : "bilinear") : (cubic ? "cubic" : "linear")));
}

std::vector<std::optional<Shape>> shapes_at(const graph::Graph &g, std::int64_t batch) {
  std::vector<std::optional<Shape>> known(g.values.size());
  for (std::size_t v = 0; v < known.size(); ++v) known[v] = g.values[v].shape;
  try {
    if (const auto inputs = graph::declared_input_types(g, batch)) {
      const graph::PartlyInferred inferred = graph::infer_partly(g, *inputs, {}, graph::Misfit::stops);
      for (std::size_t v = 0; v < known.size(); ++v)
        if (inferred.types[v]) known[v] = inferred.types[v]->shape;
    }
  } catch (const Error &) {
    // Inputs of such a batch are too large.
  }
  return known;
}

void to_opset(graph::Graph &g, int opset) {
  const auto has_lengths = [&](const Node &node) {
    return opset < 18 && node.op == &ops::kSplit && node.attrs.has("num_outputs");
  };
  std::vector<std::optional<Shape>> one, two;  // of batches of as many, before nodes have other forms
  if (std::ranges::any_of(g.nodes, has_lengths)) one = shapes_at(g, 1), two = shapes_at(g, 2);
  for (Node &node : g.nodes) {
    const std::string_view op = node.op->name;
    if (op == "GroupNormalization") group_parameters(g, node, opset);
    if (op == "GridSample") rename_mode(node, opset);
    // What is not said meant another thing.
    if (op == "RoiAlign" && opset < 16 && !node.attrs.has("coordinate_transformation_mode"))
      node.attrs.set("coordinate_transformation_mode", std::string("half_pixel"));
    if (has_lengths(node)) {
      const auto x = static_cast<std::size_t>(node.inputs[0]);
      split_by_lengths(g, node, opset, one[x], two[x]);
    }
    if (opset < 18 && had_axes_attribute(op)) reduce_axes_as_attribute(g, node, opset);
    if (opset < 20 && op == "DFT") transform_axis_as_attribute(g, node, opset);
    // From opset 18 on, equal parts must be asked for by number.
    if (opset >= 18 && op == "Split" && (node.inputs.size() < 2 || node.inputs[1] == kNoValue) &&
        !node.attrs.has("num_outputs"))
      node.attrs.set("num_outputs", static_cast<std::int64_t>(node.outputs.size()));
    refuse_mode(node, opset, "Pad", "mode", "wrap");
    refuse_mode(node, opset, "Resize", "coordinate_transformation_mode", "half_pixel_symmetric");
    drop_new_attributes(node, opset);
    check_new_forms(node, opset);
    check_types(g, node, opset);
  }
}

}  // namespace qtn::onnx
