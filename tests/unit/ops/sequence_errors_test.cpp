// SPDX-License-Identifier: Apache-2.0
// What operators along sequences and steps of optimizers refuse, and in which words.
#include <cstring>

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

void refuse(qstatus status, const std::string &text, const char *op, const Attrs &a, const Inputs &inputs,
            std::size_t outputs = 1) {
  expect_error(status, text, [&] { ops::infer_op(*ops::find_op(op), ops::Call{a, inputs, outputs}); });
}

Tensor meta(const Shape &shape) { return Tensor::meta(QTN_FLOAT32, shape); }

Attrs heads(const char *rule, std::int64_t q, std::int64_t kv) {
  return attrs({{"update_rule", std::string(rule)}, {"q_num_heads", q}, {"kv_num_heads", kv}});
}

void linear_attention(void **) {
  const Tensor x = meta({1, 3, 4}), none = meta({1, 3, 0}), rate = meta({1, 3, 3}), flat = meta({3, 4});
  const char *op = "LinearAttention";
  refuse(QTN_EINVAL, "LinearAttention: update_rule is \"sum\"", op, heads("sum", 2, 2), {&x, &x, &x});
  refuse(QTN_EINVAL, "LinearAttention: q_num_heads is 3 and kv_num_heads 2, of which neither is a multiple of the other",
         op, heads("linear", 3, 2), {&x, &x, &x});
  refuse(QTN_EINVAL, "LinearAttention: update_rule \"gated\" needs the input decay", op, heads("gated", 2, 2),
         {&x, &x, &x});
  refuse(QTN_EINVAL, "LinearAttention: update_rule \"linear\" takes no input beta", op, heads("linear", 2, 2),
         {&x, &x, &x, nullptr, nullptr, &rate});
  refuse(QTN_ESHAPE, "LinearAttention: decay is 1x3x3, not 1x3x2 or 1x3x4", op, heads("gated", 2, 2),
         {&x, &x, &x, nullptr, &rate});
  refuse(QTN_ESHAPE, "LinearAttention: query, key and value must have 3 axes, one is 3x4", op, heads("linear", 2, 2),
         {&x, &flat, &x});
  refuse(QTN_ESHAPE, "LinearAttention: past_state is 1x3x4, not 1x2x2x2", op, heads("linear", 2, 2), {&x, &x, &x, &x});
  refuse(QTN_ESHAPE, "heads for query 1x3x0 and value 1x3x0", op, heads("linear", kHuge, kHuge), {&none, &none, &none});
}

void causal_convolution(void **) {
  const Tensor x = meta({1, 2, 5}), w = meta({2, 1, 3}), wrong = meta({3, 1, 3}), none = meta({2, 1, 0});
  const char *op = "CausalConvWithState";
  refuse(QTN_EINVAL, "CausalConvWithState: activation is \"relu\"", op, attrs({{"activation", std::string("relu")}}),
         {&x, &w});
  refuse(QTN_ESHAPE, "CausalConvWithState: weight is 3x1x3, not [2, 1, k] for input 1x2x5", op, attrs(), {&x, &wrong});
  refuse(QTN_EINVAL, "CausalConvWithState: dilation is 0", op, attrs({{"dilation", std::int64_t{0}}}), {&x, &w});
  refuse(QTN_ESHAPE, "CausalConvWithState: ", op, attrs({{"dilation", kHuge}}), {&x, &w});
  refuse(QTN_ESHAPE, "CausalConvWithState: weight is 2x1x0", op, attrs(), {&x, &none});
  refuse(QTN_ESHAPE, "CausalConvWithState: bias is 1x2x5 for 2 channels", op, attrs(), {&x, &w, &x});
  refuse(QTN_ESHAPE, "CausalConvWithState: past_state is 1x2x5, not 1x2x2", op, attrs(), {&x, &w, nullptr, &x});
}

void attention_of_onnxruntime(void **) {
  const Tensor x = meta({2, 3, 8}), packed = meta({2, 3, 2, 3, 4}), bias = meta({8}), none = meta({2, 3, 0});
  const Tensor mask = Tensor::meta(QTN_INT32, {5});
  const Attrs two = attrs({{"num_heads", std::int64_t{2}}});
  const char *op = "MultiHeadAttention";
  refuse(QTN_EUNSUPPORTED, "MultiHeadAttention: queries, keys and values in one tensor are not supported", op, two,
         {&packed});
  refuse(QTN_EINVAL, "MultiHeadAttention: num_heads is 0", op, attrs(), {&x, &x, &x});
  refuse(QTN_EINVAL, "MultiHeadAttention: num_heads is 9223372036854775807, query 2x3x0", op,
         attrs({{"num_heads", kHuge}}), {&none, &none, &none});
  refuse(QTN_ESHAPE, "MultiHeadAttention: bias is 8, not 24 numbers", op, two, {&x, &x, &x, &bias});
  refuse(QTN_ESHAPE, "MultiHeadAttention: key_padding_mask is 5 for 2 batches of 3 queries and 3 keys", op, two,
         {&x, &x, &x, nullptr, &mask});
  refuse(QTN_EINVAL, "MultiHeadAttention: past_key and past_value go together", op, two,
         {&x, &x, &x, nullptr, nullptr, nullptr, &x});

  const Tensor lengths = Tensor::meta(QTN_INT32, {2}), total = Tensor::meta(QTN_INT32, {}), kv = meta({2, 3, 4});
  const Attrs grouped = attrs({{"num_heads", std::int64_t{2}}, {"kv_num_heads", std::int64_t{1}}});
  op = "GroupQueryAttention";
  refuse(QTN_EINVAL, "GroupQueryAttention: num_heads is 0, kv_num_heads 0", op, attrs(),
         {&x, &kv, &kv, nullptr, nullptr, &lengths, &total});
  refuse(QTN_EINVAL, "GroupQueryAttention: seqlens_k and total_sequence_length must be given", op, grouped, {&x});
  refuse(QTN_ESHAPE, "GroupQueryAttention: key is 2x3x8, not 2x3x4", op, grouped,
         {&x, &x, &x, nullptr, nullptr, &lengths, &total});
  refuse(QTN_ESHAPE, "GroupQueryAttention: total_sequence_length is 2, not one number", op, grouped,
         {&x, &kv, &kv, nullptr, nullptr, &lengths, &lengths});
}

Tensor number(std::int32_t value) { return Tensor::from<std::int32_t>(QTN_INT32, {1}, std::span(&value, 1)); }

/// A call of GroupQueryAttention, of which tests change parts: four tokens after three.
struct Grouped {
  Attrs attributes = attrs({{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}});
  std::vector<Tensor> operands{zeros({1, 4, 16}),   zeros({1, 4, 8}), zeros({1, 4, 8}), zeros({1, 2, 3, 4}),
                               zeros({1, 2, 3, 4}), number(6),        number(7)};
  std::size_t outputs = 3;

  Grouped() { operands.resize(16); }

  static Tensor zeros(const Shape &shape, qdtype dtype = QTN_FLOAT32) {
    Tensor t(dtype, shape);
    std::memset(t.data(), 0, t.nbytes());
    return t;
  }

  Grouped &with(const char *name, Attr value) {
    attributes.set(name, std::move(value));
    return *this;
  }
  Grouped &with(std::size_t i, Tensor operand) {
    operands[i] = std::move(operand);
    return *this;
  }
  void refused(qstatus status, const std::string &text) const {
    Inputs inputs;
    for (const Tensor &t : operands) inputs.push_back(t.has_data() ? &t : nullptr);
    const ops::OpDef &op = *ops::find_op("GroupQueryAttention");
    expect_error(status, "GroupQueryAttention: " + text,
                 [&] { ops::run_op(op, ops::Call{attributes, inputs, outputs}); });
  }
};

Grouped grouped(const char *name, std::int64_t value) { return Grouped().with(name, value); }

void scores_of_groups(void **) {
  grouped("causal", 2).refused(QTN_EUNSUPPORTED, "causal is 2, supported are 0 to 1");
  grouped("smooth_softmax", 2).refused(QTN_EUNSUPPORTED, "smooth_softmax is 2, supported are 0 to 1");
  grouped("qk_output", -1).refused(QTN_EUNSUPPORTED, "qk_output is -1, supported are 0 to 2");
  grouped("causal", 0)
      .with("local_window_size", std::int64_t{3})
      .refused(QTN_EUNSUPPORTED, "causal is 0, and local_window_size 3");
  Grouped shown;
  shown.outputs = 4;
  shown.refused(QTN_EINVAL, "qk_output is 0, with an output");
  enum : std::size_t { kAdded = 10, kSink = 11, kQueryNorm = 14, kKeyNorm = 15 };
  const auto with = [](std::size_t i, const Shape &shape) { return Grouped().with(i, Grouped::zeros(shape)); };
  with(kAdded, {1, 1, 4}).refused(QTN_ESHAPE, "attention_bias is 1x1x4 for 1 batches of 4 heads and 4 places");
  with(kAdded, {1, 3, 4, 7}).refused(QTN_ESHAPE, "attention_bias is 1x3x4x7 for 1 batches of 4 heads and 4 places");
  with(kAdded, {1, 1, 4, 6}).refused(QTN_ESHAPE, "attention_bias is 1x1x4x6, total_sequence_length 7");
  with(kSink, {3}).refused(QTN_ESHAPE, "head_sink is 3, not 4");
  with(kQueryNorm, {4}).refused(QTN_EUNSUPPORTED, "q_norm_weight is not supported");
  with(kKeyNorm, {4}).refused(QTN_EUNSUPPORTED, "k_norm_weight is not supported");
}

/// With caches of integers.
Grouped coded(std::int64_t bits, const char *type) {
  Grouped g = grouped("kv_cache_bit_width", bits);
  for (const char *name : {"k_quant_type", "v_quant_type"}) g.with(name, std::string(type));
  for (const std::size_t i : {3, 4}) g.with(i, Grouped::zeros({1, 2, 3, 4}, QTN_INT8));
  return g;
}

void caches_of_groups(void **) {
  coded(8, "PER_TENSOR")
      .with("v_quant_type", std::string("NONE"))
      .refused(QTN_EUNSUPPORTED, "k_quant_type is PER_TENSOR, v_quant_type NONE, supported are NONE, PER_TENSOR and");
  coded(8, "PER_ROW").refused(QTN_EUNSUPPORTED, "k_quant_type is PER_ROW, v_quant_type PER_ROW");
  coded(2, "PER_TENSOR").refused(QTN_EUNSUPPORTED, "kv_cache_bit_width is 2 where k_quant_type is PER_TENSOR");
  coded(8, "NONE").refused(QTN_EUNSUPPORTED, "kv_cache_bit_width is 8 where k_quant_type is NONE");
  coded(4, "PER_TENSOR").refused(QTN_EDTYPE, "past_key is int8, not uint8");
  coded(8, "PER_TENSOR").refused(QTN_EINVAL, "k_scale is absent");
  coded(8, "PER_TENSOR").with(12, Grouped::zeros({3})).refused(QTN_ESHAPE, "k_scale is 3, not 1 numbers");
  coded(8, "PER_CHANNEL").with(12, Grouped::zeros({1})).refused(QTN_ESHAPE, "k_scale is 1, not 8 numbers");
  Grouped odd = coded(4, "PER_TENSOR").with(0, Grouped::zeros({1, 4, 24}));
  for (const std::size_t i : {1, 2, 3, 4}) odd.with(i, Tensor());
  odd.refused(QTN_EUNSUPPORTED, "heads have 3 features, and pairs of 4 bits are supported");

  Grouped sliding = grouped("sliding_window_cache", 1);
  sliding.refused(QTN_EINVAL, "sliding_window_cache is 1, and local_window_size -1");
  sliding.with("local_window_size", std::int64_t{4}).refused(QTN_EINVAL, "past_key has 3 places for a window of 4");
  sliding.with("local_window_size", std::int64_t{3}).with("qk_output", std::int64_t{1});
  sliding.refused(QTN_EUNSUPPORTED, "qk_output is 1 with sliding_window_cache");
  sliding.with("qk_output", std::int64_t{0}).with(5, number(7));
  sliding.refused(QTN_EINVAL, "seqlens_k has 7, total_sequence_length is 7");
}

void counts_and_optimizers(void **) {
  const Tensor words = Tensor::meta(QTN_INT64, {4}), x = meta({2}), one = meta({}), count = Tensor::meta(QTN_INT64, {});
  using Ints = std::vector<std::int64_t>;
  const auto pool = [](Ints counts, Ints columns) {
    return attrs({{"ngram_counts", counts}, {"ngram_indexes", columns}, {"pool_int64s", Ints{1, 2, 3}}});
  };
  const char *op = "TfIdfVectorizer";
  refuse(QTN_EINVAL, "TfIdfVectorizer: ngram_indexes is empty", op, pool({0}, {}), {&words});
  refuse(QTN_EINVAL, "TfIdfVectorizer: ngram_indexes has -1", op, pool({0}, {0, -1, 1}), {&words});
  refuse(QTN_EINVAL, "TfIdfVectorizer: ngram_counts says that sequences of 2 are the elements from 0 to 3 of the 3", op,
         pool({0, 0}, {0, 1}), {&words});
  refuse(QTN_EINVAL, "TfIdfVectorizer: pool_int64s has more sequences than the 2 of ngram_indexes", op,
         pool({0}, {0, 1}), {&words});
  refuse(QTN_EDTYPE, "TfIdfVectorizer: x is float32", op, pool({0}, {0, 1, 2}), {&x});

  refuse(QTN_EINVAL, "Adam: 3 inputs after the first two are no 4 for each parameter", "Adam", attrs(),
         {&one, &count, &x, &x, &x});
  refuse(QTN_ESHAPE, "Adagrad: input 4 is float32 scalar, its parameter float32 2", "Adagrad", attrs(),
         {&one, &count, &x, &x, &one});
  refuse(QTN_ESHAPE, "Adagrad: R is 2, not one number", "Adagrad", attrs(), {&x, &count, &x, &x, &x});
  refuse(QTN_EINVAL, "Momentum: mode is \"\"", "Momentum", attrs(), {&one, &count, &x, &x, &x});
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::linear_attention), cmocka_unit_test(qtn::causal_convolution),
                              cmocka_unit_test(qtn::attention_of_onnxruntime),
                              cmocka_unit_test(qtn::scores_of_groups), cmocka_unit_test(qtn::caches_of_groups),
                              cmocka_unit_test(qtn::counts_and_optimizers)};
  return cmocka_run_group_tests_name("ops/sequence_errors", tests, nullptr, nullptr);
}
