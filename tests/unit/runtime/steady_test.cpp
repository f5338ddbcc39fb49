// SPDX-License-Identifier: Apache-2.0
// What a run takes from the system once its session has made plan and memory: its outputs, and no lock.
#include "capi/counting.hpp"
#include "quant/quantize_dynamic.hpp"
#include "runtime/plan_cache.hpp"
#include "runtime/run_pool.hpp"
#include "runtime/runner.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

constexpr std::int64_t kAllocationsOfATensor = 2;  // its elements, and who owns them

Attrs same(std::int64_t stride = 1, std::int64_t group = 1) {
  return attrs({{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{stride, stride}}, {"group", group}});
}

/// Runs with every number of threads; images are of 3x32x32.
void expect_steady(const graph::Graph &g, const std::string &what) {
  for (const int threads : {1, 2}) {
    const runtime::Session session(g, {runtime::Engine::native, threads});
    for (const std::int64_t batch : {1, 3}) {
      const Tensor x = random({batch, 3, 32, 32}, -1, 1, 5);
      const Tensor *inputs[] = {&x};
      std::vector<Tensor> outputs(g.outputs.size());
      session.run(inputs, outputs);
      const Counts taken = counts_of([&] { session.run(inputs, outputs); });
      const std::string where = cat(what, ", ", threads, " threads, batch ", batch);
      if (taken.allocations != kAllocationsOfATensor * std::ssize(outputs))
        fail_test(where, ": ", taken.allocations, " allocations for ", outputs.size(), " outputs");
      if (threads == 1 && taken.locks != 0) fail_test(where, ": ", taken.locks, " locks");
    }
  }
}

void test_inverted_residuals(void **) {
  GraphBuilder b;
  b.input("x", {1, 3, 32, 32}).constant("zero", Tensor::scalar(0)).constant("six", Tensor::scalar(6));
  add_conv(b, "stem", "x", "stem.y", {16, 3, 3, 3}, same(2));
  b.node("Clip", "stem.clip", {"stem.y", "zero", "six"}, {"s"});
  add_conv(b, "expand", "s", "expand.y", {32, 16, 1, 1}, {});
  b.node("HardSwish", "expand.act", {"expand.y"}, {"e"});
  add_conv(b, "deep", "e", "deep.y", {32, 1, 3, 3}, same(1, 32));
  b.node("Relu", "deep.act", {"deep.y"}, {"d"}).node("GlobalAveragePool", "squeeze", {"d"}, {"q"});
  add_conv(b, "excite", "q", "excite.y", {32, 32, 1, 1}, {});
  b.node("HardSigmoid", "gate", {"excite.y"}, {"h"}).node("Mul", "scale", {"d", "h"}, {"m"});
  add_conv(b, "project", "m", "project.y", {16, 32, 1, 1}, {});
  b.node("Add", "residual", {"s", "project.y"}, {"r"}).node("GlobalAveragePool", "mean", {"r"}, {"g"});
  b.node("Flatten", "flat", {"g"}, {"f"}).constant("fc", random({16, 10}, -1, 1, 1));
  b.node("MatMul", "head", {"f", "fc"}, {"y"});
  expect_steady(any_batch(quantized(b.build({"y"}))), "inverted residuals");
}

void test_bottlenecks(void **) {
  GraphBuilder b;
  b.input("x", {1, 3, 32, 32});
  add_conv(b, "stem", "x", "stem.y", {16, 3, 7, 7}, attrs({{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}}));
  b.node("Relu", "stem.act", {"stem.y"}, {"s0"});
  b.node("MaxPool", "pool", {"s0"}, {"s"}, attrs({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}));
  add_conv(b, "a", "s", "a.y", {16, 16, 3, 3}, same(2));
  b.node("Relu", "a.act", {"a.y"}, {"a"});
  add_conv(b, "b", "a", "b.y", {32, 16, 3, 3}, same());
  add_conv(b, "down", "s", "down.y", {32, 16, 1, 1}, attrs({{"strides", Ints{2, 2}}}));
  b.node("Add", "residual", {"b.y", "down.y"}, {"r0"}).node("Relu", "r.act", {"r0"}, {"r"});
  b.node("GlobalAveragePool", "mean", {"r"}, {"g"}).node("Flatten", "flat", {"g"}, {"f"});
  b.constant("fc", random({32, 10}, -1, 1, 1)).constant("fc.bias", random({10}, -1, 1, 2));
  b.node("Gemm", "head", {"f", "fc", "fc.bias"}, {"y"});
  expect_steady(any_batch(quantized(b.build({"y"}))), "bottlenecks");
}

/// Concat, Split, a shuffle of channels, and two outputs.
void test_branches(void **) {
  GraphBuilder b;
  b.input("x", {1, 3, 32, 32});
  add_conv(b, "stem", "x", "stem.y", {16, 3, 3, 3}, same(2));
  b.node("MaxPool", "pool", {"stem.y"}, {"p"}, attrs({{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}));
  b.constant("halves", ints({8, 8}))
      .node("Split", "split", {"p", "halves"}, {"l", "r"}, attrs({{"axis", std::int64_t{1}}}));
  add_conv(b, "right", "r", "r.y", {8, 8, 3, 3}, same());
  b.node("Concat", "join", {"l", "r.y"}, {"c"}, attrs({{"axis", std::int64_t{1}}}));
  b.constant("five", ints({0, 2, 8, 8, 8})).node("Reshape", "fold", {"c", "five"}, {"c5"});
  b.node("Transpose", "swap", {"c5"}, {"t"}, attrs({{"perm", Ints{0, 2, 1, 3, 4}}}));
  b.constant("four", ints({0, -1, 8, 8})).node("Reshape", "unfold", {"t", "four"}, {"u"});
  add_conv(b, "last", "u", "z", {4, 16, 1, 1}, {});
  b.node("ReduceMax", "most", {"z"}, {"w"});
  expect_steady(any_batch(quantized(b.build({"z", "w"}))), "branches");
}

void test_grids_at_every_run(void **) {
  GraphBuilder b;
  b.input("x", {1, 3, 32, 32}).constant("w", random({32, 10}, -1, 1, 1)).constant("bias", random({10}, -1, 1, 2));
  b.node("MatMul", "product", {"x", "w"}, {"m"})
      .node("Add", "add", {"m", "bias"}, {"a"})
      .node("Relu", "relu", {"a"}, {"y"});
  expect_steady(any_batch(quant::quantize_dynamic(b.build({"y"}), quant::Config("onnx"), {})), "dynamic product");
}

void test_recurrent_layers(void **) {
  for (const char *op : {"LSTM", "GRU", "RNN"}) {
    const std::int64_t gates = op == std::string("LSTM") ? 4 : op == std::string("GRU") ? 3 : 1;
    GraphBuilder b;
    b.input("x", {1, 3, 32, 32}).constant("steps", ints({0, 96, 32})).node("Reshape", "fold", {"x", "steps"}, {"s"});
    b.constant("w", random({1, gates * 16, 32}, -1, 1, 1)).constant("r", random({1, gates * 16, 16}, -1, 1, 2));
    b.node(op, "layer", {"s", "w", "r"}, {"y", "h"});
    expect_steady(any_batch(b.build({"y", "h"})), op);
  }
}

/// Nodes that attend, with masks, a bias, and what was there before.
void test_attention(void **) {
  const auto steady = [](const std::string &op, const std::vector<std::string> &inputs, const Attrs &a) {
    GraphBuilder b;
    b.input("x", {1, 3, 32, 32}).constant("steps", ints({0, 96, 32})).node("Reshape", "fold", {"x", "steps"}, {"s"});
    b.constant("heads", ints({0, 4, 96, 8})).node("Reshape", "split", {"s", "heads"}, {"past"});
    b.constant("bias", random({96}, -1, 1, 1)).constant("mask", random({96, 192}, -1, 1, 2));
    b.node(op, "node", inputs, {"y", "keys", "values"}, a);
    expect_steady(any_batch(b.build({"y", "keys", "values"})), op);
  };
  steady("Attention", {"s", "s", "s", "mask", "past", "past"},
         attrs({{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{4}}, {"is_causal", std::int64_t{1}}}));
  steady("MultiHeadAttention", {"s", "s", "s", "bias", "", "", "past", "past"},
         attrs({{"num_heads", std::int64_t{4}}, {"unidirectional", std::int64_t{1}}}));
}

/// What a run needs whose shapes depend on data, the next one finds again, however many elements it is about.
void test_stages(void **) {
  GraphBuilder b;
  b.input("x", {1, 200000}).node("Neg", "neg", {"x"}, {"n"}).constant("zero", Tensor::scalar(0));
  b.node("Greater", "greater", {"x", "zero"}, {"g"}).constant("flat", ints({-1})).constant("begin", ints({0}));
  b.node("Cast", "cast", {"g"}, {"ones"}, attrs({{"to", std::int64_t{QTN_INT64}}}));
  b.node("Reshape", "flatten", {"ones", "flat"}, {"list"}).node("ReduceSum", "count", {"list"}, {"k"});
  b.constant("axis", ints({1})).node("Slice", "slice", {"n", "begin", "k", "axis"}, {"c"});
  b.node("Neg", "again", {"c"}, {"d"}).node("Sigmoid", "sigmoid", {"d"}, {"s"}).node("ReduceSum", "sum", {"s"}, {"y"});
  const graph::Graph g = b.build({"y"});
  const runtime::Session session(g, {});
  for (const float lowest : {-1.0f, -0.9f, -1.1f}) {
    const Tensor x = random({1, 200000}, lowest, 1, 5), *inputs[] = {&x};
    std::vector<Tensor> outputs(1);
    const long first = counts_of([&] { session.run(inputs, outputs); }).large;
    const long second = counts_of([&] { session.run(inputs, outputs); }).large;
    if (first == 0 && lowest == -1) fail_test("no large allocations");
    if (second != 0) fail_test("from ", lowest, " again: ", second, " large allocations");
  }
}

/// A part plans for the first values it meets only. These keep their plans, whatever others come after them.
void test_plans_of_values(void **) {
  GraphBuilder b;
  b.input("x", {1, 100}).input("k", {1}, QTN_INT64).constant("begin", ints({0})).constant("axis", ints({1}));
  b.node("Slice", "slice", {"x", "begin", "k", "axis"}, {"c"}).node("Sigmoid", "sigmoid", {"c"}, {"y"});
  const runtime::Runner part(b.build({"y"}), {}, {true});
  const Tensor x = random({1, 100}, -1, 1, 5);
  std::vector<Tensor> outputs(1);
  const auto allocations = [&](std::int64_t length) {
    const Tensor k = ints({length}), *inputs[] = {&x, &k};
    return counts_of([&] { part.run(inputs, outputs, {}); }).allocations;
  };
  allocations(50);
  const long planned = allocations(50);
  long others = 0;
  for (std::int64_t length = 1; length <= 6; ++length) others = allocations(length);
  if (others <= planned) fail_test("all values have plans");
  if (const long taken = allocations(50); taken != planned)
    fail_test("the first values again: ", taken, " allocations, not ", planned);
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_inverted_residuals),
      cmocka_unit_test(qtn::test::test_bottlenecks),
      cmocka_unit_test(qtn::test::test_branches),
      cmocka_unit_test(qtn::test::test_grids_at_every_run),
      cmocka_unit_test(qtn::test::test_recurrent_layers),
      cmocka_unit_test(qtn::test::test_attention),
      cmocka_unit_test(qtn::test::test_stages),
      cmocka_unit_test(qtn::test::test_plans_of_values),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
