// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime that are a product or a look-up with something before or behind it, and two of ai.onnx.ml.
#include <algorithm>
#include <numeric>

#include "onnx/composing.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

/// What an activation's parameters are called, in their order in a list.
struct Activation {
  const char *op;
  std::array<const char *, 2> parameters;
};
constexpr Activation kActivations[] = {{"Relu", {}},       {"Sigmoid", {}},
                                       {"Tanh", {}},       {"Softplus", {}},
                                       {"Softsign", {}},   {"LeakyRelu", {"alpha"}},
                                       {"Elu", {"alpha"}}, {"ThresholdedRelu", {"alpha"}},
                                       {"HardSwish", {}},  {"HardSigmoid", {"alpha", "beta"}},
                                       {"Clip", {}}};

/// `parameters` of x's activation, none: its defaults.
void activate(Composing &c, const std::string &name, const std::vector<double> &parameters, const std::string &x,
              const std::string &output) {
  const auto at = std::ranges::find(kActivations, name, &Activation::op);
  if (at == std::end(kActivations)) c.refuse("activation \"", name, "\" is not supported");
  Names inputs{x};
  Attrs attrs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (name == "Clip")
      inputs.push_back(c.number_like(static_cast<float>(parameters[i]), x));
    else if (i < at->parameters.size() && at->parameters[i])
      attrs.set(at->parameters[i], parameters[i]);
  }
  c.one(at->op, std::move(inputs), attrs, output);
}

/// The convolution of x, with z added where there is one, and the activation.
void convolve(Composing &c, const std::string &x, const std::string &z, const std::string &output) {
  const Attrs attrs = c.attrs();
  const std::string name = attrs.get_string("activation", "");
  Names inputs{x, c.in(1)};
  if (!c.in(2).empty()) inputs.push_back(c.in(2));
  std::string y = c.one("Conv", std::move(inputs), without(attrs, {"activation", "activation_params"}),
                        name.empty() && z.empty() ? output : "");
  if (!z.empty()) y = c.one("Add", {y, z}, {}, name.empty() ? output : "");
  if (!name.empty()) activate(c, name, attrs.get_floats("activation_params"), y, output);
}

bool fused_conv(Composing &c) { return convolve(c, c.in(0), c.in(3), c.out(0)), true; }

bool fused_conv_of_channels_last(Composing &c) {
  const std::size_t rank = rank_of_images(c, c.in(1));
  const std::string y = c.new_name("channels_first");
  convolve(c, channels_first(c, c.in(0), rank), c.in(3).empty() ? "" : channels_first(c, c.in(3), rank), y);
  channels_last(c, y, rank, c.out(0));
  return true;
}

bool fused_gemm(Composing &c) {
  const Attrs attrs = c.attrs();
  const std::string name = attrs.get_string("activation", "");
  const Attrs own = without(attrs, {"activation", "activation_alpha", "activation_beta", "activation_gamma"});
  const std::string y = c.one("Gemm", c.node().inputs, own, name.empty() ? c.out(0) : "");
  std::vector<double> parameters;
  for (const char *parameter : {"activation_alpha", "activation_beta"})
    if (attrs.has(parameter)) parameters.push_back(attrs.get_float(parameter, 0));
  if (!name.empty()) activate(c, name, parameters, y, c.out(0));
  return true;
}

/// x with its first axis in front of the last one, then with its last two axes exchanged; a list stays as it is.
std::string turned(Composing &c, const std::string &x, bool batches, bool matrix) {
  if (!batches && !matrix) return x;
  const auto axes_of = [&](std::size_t rank) {
    std::vector<std::int64_t> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    if (batches) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
    if (matrix) std::swap(axes[rank - 1], axes[rank - 2]);
    return axes;
  };
  if (const std::optional<Tensor> t = c.constant(x); t && t->rank() >= 2) {
    const std::vector<std::int64_t> axes = axes_of(t->rank());
    const auto make = [&] { return t->permute(std::vector<std::int32_t>(axes.begin(), axes.end())).clone(); };
    return c.make(c.once(cat("turned ", batches, " ", matrix), {*t}, make));
  }
  const std::optional<Shape> shape = c.shape(x);
  if (!shape) {
    const std::string equation = std::string(batches ? "i...j" : "...ij") + (matrix ? "->...ji" : "->...ij");
    return c.one("Einsum", {x}, with("equation", equation));
  }
  if (shape->size() < 2) return x;
  return c.one("Transpose", {x}, with("perm", axes_of(shape->size())));
}

bool fused_matmul(Composing &c) {
  const Attrs attrs = c.attrs();
  const auto is_set = [&](const char *name) { return attrs.get_int(name, 0) != 0; };
  const std::string a = turned(c, c.in(0), is_set("transBatchA"), is_set("transA")),
                    b = turned(c, c.in(1), is_set("transBatchB"), is_set("transB"));
  const double alpha = attrs.get_float("alpha", 1);
  const std::string y = c.one("MatMul", {a, b}, {}, alpha == 1 ? c.out(0) : "");
  if (alpha != 1) c.one("Mul", {y, c.number_like(static_cast<float>(alpha), c.in(0))}, {}, c.out(0));
  return true;
}

/// Sums of rows of tables, normalized. The tables are those of words, places and segments, scale and shift.
bool embed(Composing &c, const std::array<std::string, 5> &tables, std::string places) {
  const std::string ids = c.in(0), segments = c.in(1), mask = c.in(7);
  if (places.empty()) places = c.formula("Shape a;Gather A 1;Range 0 B 1", {ids});
  const bool has_segments = !segments.empty() && !tables[2].empty();
  std::string sum =
      c.formula("Gather a b;Gather c d;Add A B", {tables[0], ids, tables[1], places}, has_segments ? "" : c.out(2));
  if (has_segments) sum = c.formula("Gather b c;Add a A", {sum, tables[2], segments}, c.out(2));
  c.one("LayerNormalization", {sum, tables[3], tables[4]},
        with("axis", std::int64_t{-1}, "epsilon", c.attrs().get_float("epsilon", 1e-12)), c.out(0));
  if (c.out(1).empty()) return true;
  if (mask.empty())
    c.formula("Shape a;Slice A [0] [1];ConstantOfShape B;Cast C to=6", {ids}, c.out(1));
  else
    c.formula("ReduceSum a [1] keepdims=0", {mask}, c.out(1));
  return true;
}

bool embed_layer_normalization(Composing &c) {
  return embed(c, {c.in(2), c.in(3), c.in(4), c.in(5), c.in(6)}, c.in(8));
}

/// The mask is followed by the scales of the tables and their zero points.
bool embed_integers(Composing &c) {
  std::array<std::string, 5> tables;
  for (std::size_t i = 0; i < tables.size(); ++i)
    if (!c.in(2 + i).empty()) tables[i] = c.one("DequantizeLinear", {c.in(2 + i), c.in(8 + i), c.in(13 + i)});
  return embed(c, tables, "");
}

/// Two codes to a byte as a packed type.
Tensor unpacked(Composing &c, const std::string &name, const Tensor &bytes, std::int64_t bits) {
  if (bytes.dtype() != QTN_UINT8 || bits == 8) return bytes;
  if (bytes.rank() == 0) c.refuse(name, " is a scalar");
  return bytes.to_contiguous().as_packed(bits == 4 ? QTN_UINT4 : QTN_UINT2);
}

bool gather_block_quantized(Composing &c) {
  const Attrs attrs = c.attrs();
  const std::int64_t bits = attrs.get_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) c.refuse("bits is ", bits, ", not 2, 4 or 8");
  const std::optional<Tensor> data = c.constant(c.in(0)), zeros = c.constant(c.in(3));
  if (!data || (!c.in(3).empty() && !zeros)) c.refuse("its data and zero points must be constants");
  const Tensor codes = unpacked(c, "data", *data, bits);
  const std::int64_t axis = attrs.get_int("quantize_axis", 1);
  Names inputs{c.make(codes), c.in(2)};
  if (zeros) {
    Tensor wanted = unpacked(c, "zero_points", *zeros, bits);
    // The last byte of a row may be part empty.
    const std::optional<Shape> scales = c.shape(c.in(2));
    if (scales && !scales->empty() && scales->size() == wanted.rank() && scales->back() >= 0 &&
        wanted.shape().back() > scales->back())
      wanted = c.once(cat("first ", scales->back()), {wanted},
                      [&] { return wanted.slice(-1, 0, scales->back(), 1).clone(); });
    inputs.push_back(c.make(wanted));
  } else if (data->dtype() == QTN_UINT8) {
    // What is not said is the middle of codes without a sign, but of typed ones 0.
    const std::optional<Tensor> scales = c.constant(c.in(2));
    if (!scales) c.refuse("its scales must be constants where it has no zero points");
    inputs.push_back(c.make(c.once(cat("middle ", bits), {*scales}, [&] {
      const Tensor middle(QTN_UINT8, scales->shape());
      std::fill_n(middle.as<std::uint8_t>(), middle.count(), static_cast<std::uint8_t>(1 << (bits - 1)));
      return from_plain(middle, codes.dtype());
    })));
  }
  const std::string reals =
      c.one("DequantizeLinear", std::move(inputs), with("axis", axis, "block_size", attrs.get_int("block_size", 128)));
  c.one("Gather", {reals, c.in(1)}, with("axis", attrs.get_int("gather_axis", 0)), c.out(0));
  return true;
}

/// What codes of bitsandbytes stand for, FP4 and NF4, in parts of the largest number of their block.
constexpr float kCodes[2][16] = {
    {0, 0.00520833349f, 0.666666687f, 1, 0.333333343f, 0.5f, 0.166666672f, 0.25f,  //
     0, -0.00520833349f, -0.666666687f, -1, -0.333333343f, -0.5f, -0.166666672f, -0.25f},
    {-1, -0.696192801f, -0.525073051f, -0.394917488f, -0.284441382f, -0.18477343f, -0.0910500363f, 0,  //
     0.0795802996f, 0.160930201f, 0.246112302f, 0.337915242f, 0.440709829f, 0.562617004f, 0.722956836f, 1}};

/// A matrix [n, k] of codes of 4 bits, two to a byte, the first one in its upper half, in blocks that run on through the
/// rows.
Tensor decoded(const Tensor &codes, const Tensor &largest, std::int64_t n, std::int64_t k, std::int64_t block,
               std::int64_t type) {
  const std::vector<float> scales = float_values(to_plain(largest), "absmax");
  const Tensor contiguous = codes.to_contiguous(), weights(QTN_FLOAT32, {n, k});
  const auto *pairs = contiguous.as<const std::uint8_t>();
  for (std::int64_t i = 0; i < n * k; ++i)
    weights.as<float>()[i] =
        kCodes[type][pairs[i / 2] >> (i % 2 ? 0 : 4) & 15u] * scales[static_cast<std::size_t>(i / block)];
  return weights;
}

/// A product by such a matrix.
bool matmul_of_codes(Composing &c) {
  const Attrs attrs = c.attrs();
  const std::int64_t n = attrs.get_int("N", 0), k = attrs.get_int("K", 0), block = attrs.get_int("block_size", 0),
                     type = attrs.get_int("quant_type", -1);
  if ((type != 0 && type != 1) || block < 16 || (block & (block - 1)) != 0)
    c.refuse("quant_type is ", type, " and block_size ", block, ", not 0 or 1 and a power of 2 from 16 on");
  const std::optional<Tensor> codes = c.constant(c.in(1)), largest = c.constant(c.in(2));
  if (!codes || !largest || codes->dtype() != QTN_UINT8 ||
      (largest->dtype() != QTN_FLOAT32 && !is_narrow_float(largest->dtype())))
    c.refuse("B must be constant bytes, and absmax constant floats");
  const std::int64_t bytes = codes->count();
  if (n < 1 || k < 1 || n > 2 * bytes / k || bytes != (n * k + 1) / 2 || largest->count() != (n * k - 1) / block + 1)
    c.refuse("B has ", bytes, " bytes and absmax ", largest->count(), " numbers for N = ", n, ", K = ", k,
             " and blocks of ", block);
  const bool turns = attrs.get_int("transB", 1) != 0;
  const std::string what = cat("decoded ", n, " ", k, " ", block, " ", type, " ", turns);
  const Tensor b = c.once(what, {*codes, *largest}, [&] {
    const Tensor weights = decoded(*codes, *largest, n, k, block, type);
    const int order[] = {1, 0};
    return from_plain(turns ? weights.permute(order).clone() : weights, largest->dtype());
  });
  c.one("MatMul", {c.in(0), c.make(b)}, {}, c.out(0));
  return true;
}

/// Columns of a matrix, those of a list as a matrix of one row.
bool array_feature_extractor(Composing &c) {
  const std::optional<Shape> shape = c.shape(c.in(0));
  if (!shape) c.refuse("the number of axes of its first input must be known");
  c.formula(
      shape->size() == 1 ? "Reshape b [-1];Gather a A axis=-1;Reshape B [1,-1]" : "Reshape b [-1];Gather a A axis=-1",
      {c.in(0), c.in(1)}, c.out(0));
  return true;
}

bool binarizer(Composing &c) {
  const auto threshold = static_cast<float>(c.attrs().get_float("threshold", 0));
  c.formula("Greater a b;CastLike A a", {c.in(0), c.number_like(threshold, c.in(0))}, c.out(0));
  return true;
}

constexpr const char *kMl = "ai.onnx.ml";

}  // namespace

const std::vector<ComposedRule> kFusedRules{{ops::kMicrosoft, "FusedConv", fused_conv},
                                            {ops::kMicrosoft, "NhwcFusedConv", fused_conv_of_channels_last},
                                            {ops::kMicrosoft, "FusedGemm", fused_gemm},
                                            {ops::kMicrosoft, "FusedMatMul", fused_matmul},
                                            {ops::kMicrosoft, "TransposeMatMul", fused_matmul},
                                            {ops::kMicrosoft, "EmbedLayerNormalization", embed_layer_normalization},
                                            {ops::kMicrosoft, "QEmbedLayerNormalization", embed_integers},
                                            {ops::kMicrosoft, "GatherBlockQuantized", gather_block_quantized},
                                            {ops::kMicrosoft, "MatMulBnb4", matmul_of_codes},
                                            {kMl, "ArrayFeatureExtractor", array_feature_extractor},
                                            {kMl, "Binarizer", binarizer}};

}  // namespace qtn::onnx
