// SPDX-License-Identifier: Apache-2.0
// FlexAttention, and the attention of ONNX Runtime with weights inside.
#include <algorithm>
#include <cmath>

#include "onnx/composing.hpp"
#include "onnx/tensor_proto.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

constexpr std::int64_t kLast = -1;

std::optional<std::int64_t> dim_of(const Composing &c, const std::string &name, std::size_t axis, std::size_t rank) {
  const std::optional<Shape> shape = c.shape(name);
  if (!shape || shape->size() != rank || (*shape)[axis] < 0) return std::nullopt;
  return (*shape)[axis];
}

/// The nodes of a graph of one input and one output, in place of the node.
std::string scored(Composing &c, const std::shared_ptr<const GraphProto> &graph, const std::string &input) {
  if (graph->inputs.size() != 1 || graph->outputs.size() != 1)
    c.refuse("a graph of it has ", graph->inputs.size(), " inputs and ", graph->outputs.size(),
             " outputs, not 1 and 1");
  Renamed names = initializers_of(c, *graph);
  names[graph->inputs[0].name] = input;
  return inlined(c, graph, std::move(names))[0];
}

/// Heads of keys or values as often as queries share them.
std::string repeated(Composing &c, const std::string &x, std::int64_t heads, std::int64_t times) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < heads * times; ++i) numbers.push_back(i / times);
  return c.one("Gather", {x, c.make_ints(numbers)}, with("axis", std::int64_t{1}));
}

bool flex_attention(Composing &c) {
  const Attrs attrs = c.attrs();
  std::string q = c.in(0), k = c.in(1), v = c.in(2);
  const auto q_heads = dim_of(c, q, 1, 4), heads = dim_of(c, k, 1, 4), features = dim_of(c, q, 3, 4);
  if (q_heads && heads && *q_heads != *heads) {
    constexpr std::int64_t kMostHeads = 1 << 16;
    if (*heads < 1 || *q_heads % *heads != 0 || *q_heads > kMostHeads)
      c.refuse(*q_heads, " heads of Q do not share ", *heads, " of K");
    k = repeated(c, k, *heads, *q_heads / *heads);
    v = repeated(c, v, *heads, *q_heads / *heads);
  }
  if (!attrs.has("scale") && !features) c.refuse("without scale, the features of Q must be known");
  const double scale = attrs.get_float("scale", features ? 1 / std::sqrt(static_cast<double>(*features)) : 1);
  if (!(scale >= 0)) c.refuse("scale is ", scale);
  const std::string root = c.number_like(std::sqrt(static_cast<float>(scale)), c.in(0));
  std::string scores = c.formula("Mul a c;Mul b c;Transpose B perm=[0,1,3,2];MatMul A C", {q, k, root});
  const std::int64_t type = c.type(c.in(0)),
                     precision = attrs.get_int("softmax_precision", type == QTN_FLOAT64 ? QTN_FLOAT64 : QTN_FLOAT32);
  const bool casts = type != 0 && type != precision;
  const auto cast = [&](const std::string &x) { return casts ? c.one("Cast", {x}, with("to", precision)) : x; };
  scores = cast(scores);
  if (const auto change = c.graph("score_mod")) scores = scored(c, change, scores);
  std::string shares = c.formula("Softmax a axis=-1", {scores});
  if (const auto change = c.graph("prob_mod")) shares = scored(c, change, shares);
  const std::string y = c.one("MatMul", {shares, cast(v)}, {}, casts ? "" : c.out(0));
  if (casts) c.one("CastLike", {y, c.in(2)}, {}, c.out(0));
  return true;
}

/// Queries, keys and values side by side, as attention; `mask`, `past` and `added` may be absent.
void attend(Composing &c, const std::string &all, const Attrs &attrs, const std::string &mask, const std::string &past,
            const std::string &added) {
  if (attrs.get_int("do_rotary", 0) != 0) c.refuse("do_rotary is not supported");
  if (attrs.get_int("past_present_share_buffer", 0) != 0) c.refuse("past_present_share_buffer is not supported");
  const std::vector<std::int64_t> sizes = attrs.get_ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3) c.refuse("qkv_hidden_sizes has ", sizes.size(), " numbers, not 3");
  Attrs split = with("axis", kLast);
  Names parts{all};
  if (sizes.empty())
    split.set("num_outputs", std::int64_t{3});
  else
    parts.push_back(c.make_ints(sizes));
  Names inputs = c.add("Split", std::move(parts), split, Names(3));
  inputs.insert(inputs.end(), {"", mask, added});
  if (!past.empty()) {
    const Names both = c.add("Split", {past}, with("axis", std::int64_t{0}, "num_outputs", std::int64_t{2}), Names(2));
    for (const std::string &one : both) inputs.push_back(c.formula("Squeeze a [0]", {one}));
  }
  Attrs own;
  for (const char *name : {"num_heads", "mask_filter_value", "scale", "unidirectional"})
    for (const auto &[key, value] : attrs)
      if (key == name) own.set(key, value);
  Names outputs{c.out(0)};
  if (!c.out(1).empty()) outputs.insert(outputs.end(), {"", ""});
  const Names made = c.add("MultiHeadAttention", std::move(inputs), own, outputs, ops::kMicrosoft);
  if (c.out(1).empty()) return;
  c.formula("Unsqueeze a [0];Unsqueeze b [0];Concat A B axis=0", {made[1], made[2]}, c.out(1));
}

// Inputs x, weights, bias, mask_index, past, attention_bias.
bool attention(Composing &c) {
  std::string all = c.one("MatMul", {c.in(0), c.in(1)});
  if (!c.in(2).empty()) all = c.one("Add", {all, c.in(2)});
  attend(c, all, c.attrs(), c.in(3), c.in(4), c.in(5));
  return true;
}

// Inputs x, weights, bias, the scales of both, mask_index, the zero points of both, past.
bool quantized_attention(Composing &c) {
  const std::string all = c.add("MatMulIntegerToFloat", {c.in(0), c.in(1), c.in(3), c.in(4), c.in(6), c.in(7), c.in(2)},
                                {}, {""}, ops::kMicrosoft)[0];
  attend(c, all, c.attrs(), c.in(5), c.in(8), "");
  return true;
}

/// Positions [batch, places] of x, whose axis of places is the last but one. Where the file has one number in their place,
/// it is that of the first.
std::string positions_of(Composing &c, const std::string &x, const std::string &given) {
  const std::optional<Shape> shape = c.shape(given);
  if (shape && shape->size() == 2) return given;
  std::string counted = c.formula("Shape a;Gather A -2;Range 0 B 1", {x});
  if (!shape || *shape != Shape{1})  // positions of all places are these already
    counted = c.formula("Size a;Equal A 1;Cast B to=7;Mul b C", {given, counted});
  return c.formula("Shape a end=1;Shape a start=-2 end=-1;Concat A B axis=0;Add b c;Expand D C", {x, counted, given});
}

/// The features of a head, which is as wide as its cosines say.
std::string head_width(Composing &c, const std::string &cosines) {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 40;
  const std::optional<Shape> shape = c.shape(cosines);
  if (!shape || shape->size() != 2 || shape->back() == -1) return c.formula("Shape a start=1;Mul A [2]", {cosines});
  if (shape->back() < 1 || shape->back() > kMostPairs)
    c.refuse("without num_heads, cos_cache has ", shape->back(), " columns");
  return c.make_ints({2 * shape->back()});
}

// Inputs x, position_ids, cos_cache, sin_cache; ONNX's own has the positions last.
bool rotary_embedding(Composing &c) {
  const Attrs attrs = c.attrs();
  if (attrs.get_int("is_packed_batching", 0) != 0) c.refuse("is_packed_batching is not supported");
  if (attrs.get_float("scale", 1) != 1) c.refuse("scale is ", attrs.get_float("scale", 1), ", not 1");
  std::string x = c.in(0), positions = positions_of(c, x, c.in(1));
  const std::optional<Shape> shape = c.shape(x);
  const bool has_heads = shape && shape->size() == 4;
  const std::int64_t heads = attrs.get_int("num_heads", 0);
  Attrs own;
  for (const char *name : {"interleaved", "rotary_embedding_dim"})
    if (attrs.get_int(name, 0) != 0) own.set(name, attrs.get_int(name, 0));
  if (!has_heads && heads != 0) own.set("num_heads", heads);
  const bool splits = !has_heads && heads == 0;
  if (splits) {
    // What lies side by side at one place of [batch, places, features of all heads] or [batch, heads, places, features]
    // are heads of a batch that has no other place.
    const std::string rows = c.formula("Shape a end=1;Shape a start=-2;Concat A [-1] B axis=0;Reshape a C", {x});
    positions = c.formula("Unsqueeze a [1];Shape b end=3;Expand A B;Reshape C [-1,1]", {positions, rows});
    x = c.formula("Shape a start=-1;Div A b;Concat [-1] B [1] b axis=0;Reshape a C", {x, head_width(c, c.in(2))});
  }
  const std::string y = c.one("RotaryEmbedding", {x, c.in(2), c.in(3), positions}, own, splits ? "" : c.out(0));
  if (splits) c.formula("Shape b;Reshape a A", {y, c.in(0)}, c.out(0));
  return true;
}

}  // namespace

const std::vector<ComposedRule> kAttentionRules{{"ai.onnx.preview", "FlexAttention", flex_attention},
                                                {ops::kMicrosoft, "Attention", attention},
                                                {ops::kMicrosoft, "QAttention", quantized_attention},
                                                {ops::kMicrosoft, "RotaryEmbedding", rotary_embedding}};

}  // namespace qtn::onnx
