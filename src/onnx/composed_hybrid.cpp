// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime for decoders that mix attention with linear attention, convolutions and experts.
#include <limits>

#include "onnx/composing.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

/// Refuses every other value of the attribute, which is the default.
void require_default(const Composing &c, const char *name, std::int64_t value) {
  const std::int64_t given = c.attrs().get_int(name, value);
  if (given != value) c.refuse(name, " is ", given, ", not ", value);
}

/// The lengths of the axes from `first` to `end`.
std::string lengths(Composing &c, const std::string &x, std::int64_t first,
                    std::int64_t end = std::numeric_limits<std::int64_t>::max()) {
  return c.one("Shape", {x}, with("start", first, "end", end));
}

/// x in the shape that two lists of lengths say, one after the other.
std::string reshaped(Composing &c, const std::string &x, const std::string &front, const std::string &back,
                     const std::string &output = "") {
  return c.formula("Concat b c axis=0;Reshape a A", {x, front, back}, output);
}

/// x in the shape of the other.
std::string like(Composing &c, const std::string &x, const std::string &other, const std::string &output) {
  return c.formula("Shape b;Reshape a A", {x, other}, output);
}

std::string root_mean_square(Composing &c, const std::string &x, const std::string &scale) {
  return c.one("SimplifiedLayerNormalization", {x, scale}, with("epsilon", c.attrs().get_float("epsilon", 1e-5)));
}

/// x [batch, places, channels ...] as [batch, channels, places], and the other way round.
std::string with_places_last(Composing &c, const std::string &x) {
  const std::optional<Shape> shape = c.shape(x);
  const bool flat = shape && shape->size() == 3;
  return channels_first(c, flat ? x : reshaped(c, x, lengths(c, x, 0, 2), lengths(c, c.in(1), 0, 1)), 3);
}

void with_channels_last(Composing &c, const std::string &x, const std::string &output) {
  const std::string turned = channels_last(c, x, 3, "");
  reshaped(c, turned, lengths(c, turned, 0, 2), lengths(c, c.in(0), 2), output);
}

// Inputs x, weight, bias, past_state.
bool causal_convolution(Composing &c) {
  require_default(c, "state_window", 0);
  require_default(c, "ndim", 1);
  const Attrs attrs = c.attrs(), own = without(attrs, {"channels_last", "ndim", "state_window"});
  Names inputs = c.node().inputs, outputs = c.node().outputs;
  const bool turns = attrs.get_int("channels_last", 0) != 0;
  if (turns) {
    for (std::size_t i = 0; i < inputs.size(); i += 3)
      if (!inputs[i].empty()) inputs[i] = with_places_last(c, inputs[i]);
    outputs.assign(outputs.size(), "");
  }
  const Names made = c.add("CausalConvWithState", std::move(inputs), own, std::move(outputs));
  for (std::size_t o = 0; turns && o < made.size(); ++o)
    if (!c.out(o).empty()) with_channels_last(c, made[o], c.out(o));
  return true;
}

bool linear_attention(Composing &c) {
  require_default(c, "state_window", 0);
  c.add("LinearAttention", c.node().inputs, without(c.attrs(), {"state_window"}), c.node().outputs);
  return true;
}

/// What is computed in float32 between operands of another type.
std::string as_float(Composing &c, const std::string &x) {
  const std::int32_t type = c.type(x);
  return type == 0 || type == QTN_FLOAT32 ? x : c.one("Cast", {x}, with("to", std::int64_t{QTN_FLOAT32}));
}

// Inputs a, dt_bias, decay_scale, b.
bool linear_attention_gate(Composing &c) {
  c.formula("Add b c;Softplus A;Mul B d;CastLike C a", {c.in(0), as_float(c, c.in(0)), c.in(1), c.in(2)}, c.out(0));
  if (!c.out(1).empty()) c.one("Sigmoid", {c.in(3)}, c.out(1));
  return true;
}

// Inputs x, scale, gate. The scale says of how many features each root of their mean square is.
bool gated_rms_norm(Composing &c) {
  const std::string activation = c.attrs().get_string("activation", "silu");
  const bool is_sigmoid = activation == "sigmoid";
  if (!is_sigmoid && activation != "silu" && activation != "swish")
    c.refuse("activation is \"", activation, "\", not silu, swish or sigmoid");
  const std::string groups = reshaped(c, c.in(0), c.make_ints({-1}), lengths(c, c.in(1), 0));
  const std::string y = like(c, root_mean_square(c, groups, c.in(1)), c.in(0), "");
  c.one("Mul", {y, c.one(is_sigmoid ? "Sigmoid" : "Swish", {c.in(2)})}, c.out(0));
  return true;
}

// Inputs x, y, gate.
bool gated_add(Composing &c) {
  c.formula("Mul b c;Add a A", {c.in(0), c.in(1), c.in(2)}, c.out(0));
  return true;
}

// Inputs x, scale.
bool scaled_silu(Composing &c) {
  const std::string x = as_float(c, c.in(0)), given = c.in(1);
  const std::string scale =
      given.empty() ? c.make(Tensor::scalar(static_cast<float>(c.attrs().get_float("alpha", 1)))) : as_float(c, given);
  c.formula("Mul b c;CastLike A a;Swish B", {c.in(0), x, scale}, c.out(0));
  return true;
}

// Inputs x, scale: of each branch and feature, or of features.
bool branchwise_rms_norm(Composing &c) {
  const std::int64_t branches = c.attrs().get_int("num_branches", 0);
  std::string x = c.in(0);
  if (branches < 0) c.refuse("num_branches is ", branches);
  if (branches > 0) x = reshaped(c, x, lengths(c, x, 0, -1), c.make_ints({branches, -1}));
  const std::string features = lengths(c, x, -1);
  std::string y = root_mean_square(c, x, c.one("Expand", {c.number_like(1, c.in(0)), features}));
  if (!c.in(1).empty()) {
    const std::string scale = c.type(c.in(1)) == c.type(c.in(0)) ? c.in(1) : c.one("CastLike", {c.in(1), c.in(0)});
    y = c.one("Mul", {y, reshaped(c, scale, c.make_ints({-1}), features)});
  }
  like(c, y, c.in(0), c.out(0));
  return true;
}

/// The stream of positions, that of time, height or width, by which each pair of features turns.
std::vector<std::int64_t> streams(Composing &c) {
  constexpr std::int64_t kMostPairs = 1 << 16;
  const std::vector<std::int64_t> sections = c.attrs().get_ints("mrope_section");
  const bool in_turns = c.attrs().get_int("mrope_layout", 0) != 0;
  if (sections.size() != 3) c.refuse("mrope_section has ", sections.size(), " numbers, not 3");
  std::vector<std::int64_t> all;
  for (std::int64_t stream = 0; stream < 3; ++stream) {
    const std::int64_t section = sections[static_cast<std::size_t>(stream)];
    if (section < 0 || section > kMostPairs) c.refuse("mrope_section holds ", section);
    for (std::int64_t i = 0; i < section; ++i) all.push_back(in_turns ? 0 : stream);
  }
  for (std::size_t stream = 1; in_turns && stream < 3; ++stream)
    for (std::size_t i = 0; i < static_cast<std::size_t>(sections[stream]); ++i)
      if (3 * i + stream < all.size()) all[3 * i + stream] = static_cast<std::int64_t>(stream);
  return all;
}

// Inputs x, position_ids [3, batch, places], cos_cache, sin_cache. Every pair takes the row that its stream names.
bool rotary_embedding_of_streams(Composing &c) {
  const Attrs attrs = c.attrs();
  std::string what = cat("streams ", attrs.get_int("mrope_layout", 0));
  for (const std::int64_t section : attrs.get_ints("mrope_section")) what += cat(" ", section);
  const Tensor of_pairs = c.once(what, {}, [&] { return Tensor::from_ints(streams(c)); });
  const std::string ids = c.formula("Gather a b;Transpose A perm=[1,2,0]", {c.in(1), c.make(of_pairs)});
  const std::string rows = c.one("Reshape", {ids, c.make_ints({-1, of_pairs.count()})});
  const double scale = attrs.get_float("scale", 1);
  Names inputs{c.in(0)};
  for (const std::size_t i : {2, 3}) {
    std::string cache = c.one("GatherElements", {c.in(i), rows});
    if (scale != 1) cache = c.one("Mul", {cache, c.number_like(static_cast<float>(scale), c.in(i))});
    inputs.push_back(like(c, cache, ids, ""));
  }
  c.one("RotaryEmbedding", std::move(inputs),
        without(attrs, {"is_packed_batching", "mrope_layout", "mrope_section", "scale"}), c.out(0));
  return true;
}

}  // namespace

const std::vector<ComposedRule> kHybridRules{{ops::kMicrosoft, "CausalConvWithState", causal_convolution},
                                             {ops::kMicrosoft, "LinearAttention", linear_attention},
                                             {ops::kMicrosoft, "LinearAttentionGate", linear_attention_gate},
                                             {ops::kMicrosoft, "GatedRMSNorm", gated_rms_norm},
                                             {ops::kMicrosoft, "GatedAdd", gated_add},
                                             {ops::kMicrosoft, "ScaledSiLU", scaled_silu},
                                             {ops::kMicrosoft, "BranchwiseRMSNorm", branchwise_rms_norm},
                                             {ops::kMicrosoft, "MRotaryEmbedding", rotary_embedding_of_streams}};

}  // namespace qtn::onnx
