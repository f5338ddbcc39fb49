// SPDX-License-Identifier: Apache-2.0
// What operators along sequences and steps of optimizers refuse, and in which words.
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
  refuse(QTN_EINVAL, "LinearAttention: q_num_heads is 3, which is no multiple of kv_num_heads, 2", op,
         heads("linear", 3, 2), {&x, &x, &x});
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
                              cmocka_unit_test(qtn::counts_and_optimizers)};
  return cmocka_run_group_tests_name("ops/sequence_errors", tests, nullptr, nullptr);
}
