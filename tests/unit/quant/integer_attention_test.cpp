// SPDX-License-Identifier: Apache-2.0
// Which products of two activations become integers: those of attention over the tokens that make queries, keys and
// values.
#include "graph/passes/quantize_attention.hpp"
#include "quant/calibrate.hpp"
#include "quant/graph_builder.hpp"
#include "quant/quantize_dynamic.hpp"

namespace qtn::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kWidth = 128, kHeads = 2;

struct Network {
  std::int64_t tokens = 128, known = 0;  ///< known: of the input; 0: as many as there are
  const char *term = "", *softmax_axis = "last";
  float value = 0.125f;      ///< of the number that the term takes, or fills in
  bool cached = false;       ///< keys before those of the tokens come from outside
  bool from_others = false;  ///< keys and values are made of another input
  bool shows_shares = false;

  graph::Graph build() const {
    GraphBuilder b;
    b.input("x", {1, known ? known : tokens, kWidth}).input("past", {1, kHeads, kWidth / kHeads, 8});
    b.input("others", {1, tokens, kWidth}).input("shown", {1, 1, tokens, tokens}).input("padding", {1, 1, 1, tokens});
    b.constant("heads", Tensor::from_ints(Ints{1, tokens, kHeads, kWidth / kHeads}));
    b.constant("joined", Tensor::from_ints(Ints{1, tokens, kWidth}));
    for (const std::string part : {"q", "k", "v"}) {
      const std::string from = from_others && part != "q" ? "others" : "x";
      b.constant("w" + part, GraphBuilder::ramp({kWidth, kWidth}));
      b.node("MatMul", "layer " + part, {from, "w" + part}, {part + "0"});
      b.node("Reshape", "split " + part, {part + "0", "heads"}, {part + "1"});
      const Ints order = part == "k" ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3};
      b.node("Transpose", "turn " + part, {part + "1"}, {part}, attrs({{"perm", order}}));
    }
    if (cached)
      b.node("Concat", "cache", {"past", "k"}, {"keys"}, attrs({{"axis", std::int64_t{3}}}));
    else
      b.node("Identity", "no cache", {"k"}, {"keys"});
    b.node("MatMul", "scores", {"q", "keys"}, {"s"});
    std::string scores = "s";
    if (*term) {
      const std::string op = term;
      b.constant("value", Tensor::scalar(value)).constant("chosen", [&] {
        Tensor all(QTN_BOOL, {tokens});
        std::fill_n(all.as<bool>(), tokens, true);
        return all;
      }());
      b.constant("each", GraphBuilder::ramp({tokens}));
      if (op == "Where") b.node(op, "term", {"chosen", "s", "value"}, {"changed"});
      if (op == "Mul" || op == "Add") b.node(op, "term", {"value", "s"}, {"changed"});
      Tensor causal(QTN_FLOAT32, {tokens, tokens}), some(QTN_BOOL, {1, tokens, tokens});
      for (std::int64_t i = 0; i < tokens * tokens; ++i) {
        causal.as<float>()[i] = i % tokens > i / tokens ? -1e4f : 0;
        some.as<bool>()[i] = i % tokens <= i / tokens;
      }
      b.constant("causal", causal).constant("some", some);
      if (op == "mask from outside") b.node("Add", "term", {"s", "shown"}, {"changed"});
      if (op == "padding from outside") b.node("Add", "term", {"s", "padding"}, {"changed"});
      if (op == "causal Add") b.node("Add", "term", {"s", "causal"}, {"changed"});
      if (op == "causal Where") b.node("Where", "term", {"some", "s", "value"}, {"changed"});
      if (op == "computed mask")
        b.node("Shape", "shape of scores", {"s"}, {"ss"})
            .node("ConstantOfShape", "zeros", {"ss"}, {"zs"})
            .node("Trilu", "lower", {"zs"}, {"mask"})
            .node("Add", "term", {"s", "mask"}, {"changed"});
      if (op == "Mul by key") b.node("Mul", "term", {"s", "each"}, {"changed"});
      if (op == "Relu") b.node(op, "term", {"s"}, {"changed"});
      scores = "changed";
    }
    b.node("Softmax", "softmax", {scores}, {"p"},
           attrs({{"axis", std::int64_t{std::string(softmax_axis) == "last" ? -1 : 2}}}));
    b.node("MatMul", "mean", {"p", "v"}, {"m"});
    b.node("Transpose", "turn", {"m"}, {"t"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
    b.node("Reshape", "join", {"t", "joined"}, {"y"});
    return b.build(shows_shares ? std::vector<std::string>{"y", "p"} : std::vector<std::string>{"y"});
  }
};

/// What became of both products: "float", "integer" or "centered".
std::string outcome(const graph::Graph &g) {
  std::string all;
  for (const graph::Node &node : g.nodes) {
    if (node.name != "scores" && node.name != "mean") continue;
    const bool integer = node.op == &ops::kDynamicMatMul;
    const bool centered = node.attrs.get_int("centered", 0) != 0;
    all += cat(all.empty() ? "" : ", ", integer ? centered ? "centered" : "integer" : "float");
  }
  return all;
}

std::string outcome(const Network &network, const quant::Config &config = quant::Config("onnx"),
                    const quant::DynamicOptions &options = {}) {
  return outcome(quant::quantize_dynamic(network.build(), config, options));
}

void expect(const std::string &got, const std::string &want, const char *what) {
  if (got != want) fail_test(what, ": ", got, ", not ", want);
}

void test_attention_is_found(void **) {
  expect(outcome(Network{}), "centered, integer", "bare");
  for (const char *term : {"Mul", "Add", "padding from outside"})
    expect(outcome({.term = term}), "centered, integer", term);
  expect(outcome({.term = "Where", .value = -1e4f}), "centered, integer", "what hides scores");
}

void test_others_stay(void **) {
  expect(outcome({.tokens = 127}), "float, float", "few keys");
  expect(outcome({.known = -1}), "float, float", "who knows how many keys");
  for (const char *term : {"causal Add", "causal Where", "computed mask", "mask from outside"})
    expect(outcome({.term = term, .value = -1e4f}), "float, float", term);
  expect(outcome({.cached = true}), "float, float", "a cache");
  expect(outcome({.from_others = true}), "float, float", "other tokens");
  expect(outcome({.shows_shares = true}), "float, float", "shares that are an output");
  expect(outcome({.softmax_axis = "queries"}), "float, float", "another axis");
  expect(outcome({.term = "Relu"}), "float, float", "no term");
}

/// A number added to a row of scores has to come out of what follows as one.
void test_keys_are_centered_where_softmax_takes_no_notice(void **) {
  expect(outcome({.term = "Where", .value = 0.5f}), "integer, integer", "a score in the place of others");
  expect(outcome({.term = "Mul by key"}), "integer, integer", "a factor for each key");
}

void test_settings(void **) {
  quant::Config config("onnx");
  const Attrs in_float = attrs({{"attention", "float"}});
  config.set("*", &in_float);
  expect(outcome({}, config), "float, float", "attention in float");
  quant::Config one("onnx");
  one.set("name:mean", nullptr);
  expect(outcome({}, one), "float, float", "one product in float");
  for (const char *recipe : {"fbgemm", "qnnpack"}) expect(outcome({}, quant::Config(recipe)), "float, float", recipe);
  expect(outcome({}, quant::Config("onnx"), {.granularity = ops::Granularity::tensor}), "float, float", "per tensor");
  quant::Config again("fbgemm");
  const Attrs asked = attrs({{"attention", "dynamic"}});
  again.set("*", &asked);
  expect(outcome({}, again), "centered, integer", "asked for");
  expect(outcome({.tokens = 16, .known = -1}, again), "centered, integer", "few keys, asked for");
  expect(outcome({.term = "causal Add"}, again), "centered, integer", "causal, asked for");
  expect(outcome({.cached = true}, again), "float, float", "a cache, asked for");
}

void test_static(void **) {
  for (const char *mode : {"static", "dynamic", "weights_only"}) {
    quant::Config config("onnx");
    const Attrs settings = attrs({{"mode", mode}});
    config.set("*", &settings);
    const graph::Graph g = Network{}.build();
    quant::PreparedModel prepared = quant::prepare(g, config);
    const Tensor x = GraphBuilder::ramp({1, 128, kWidth}), past = GraphBuilder::ramp({1, kHeads, kWidth / kHeads, 8});
    const Tensor shown = GraphBuilder::ramp({1, 1, 128, 128}), padding = GraphBuilder::ramp({1, 1, 1, 128});
    const Tensor *inputs[] = {&x, &past, &x, &shown, &padding};
    quant::calibrate(prepared, inputs);
    expect(outcome(quant::convert(prepared, nullptr)),
           std::string(mode) == "weights_only" ? "float, float" : "centered, integer", mode);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::test_attention_is_found),
                              cmocka_unit_test(qtn::test::test_others_stay),
                              cmocka_unit_test(qtn::test::test_keys_are_centered_where_softmax_takes_no_notice),
                              cmocka_unit_test(qtn::test::test_settings), cmocka_unit_test(qtn::test::test_static)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
