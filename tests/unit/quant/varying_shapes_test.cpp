// SPDX-License-Identifier: Apache-2.0
// Networks with control flow, and networks in which the quantized values decide other shapes than the float ones.
#include <memory>

#include "networks.hpp"
#include "quant/quantize.hpp"
#include "quant/recover/correct.hpp"
#include "quant/search/sensitivity.hpp"
#include "quant/search/targets.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr std::size_t kCount = 24;

double sqnr_db(const graph::Graph &g, const graph::Graph &quantized, const Samples &samples) {
  return Goal(g, samples, samples, {}).noise_of(quantized).sqnr_db();
}

/// Two layers, between which `middle` stands for a value.
GraphBuilder two_layers(const std::string &middle) {
  GraphBuilder builder;
  builder.input("x", {16, 8})
      .constant("w1", normal({8, 6}, 1, 0.4f))
      .constant("b1", normal({6}, 2, 0.4f))
      .constant("w2", normal({6, 5}, 3, 0.4f))
      .constant("b2", normal({5}, 4, 0.4f))
      .node("Gemm", "first", {"x", "w1", "b1"}, {"u"})
      .node("Gemm", "last", {middle, "w2", "b2"}, {"y"});
  return builder;
}

graph::Graph ordered(graph::Graph g) {
  graph::sort_topologically(g);
  graph::run_passes(g, graph::Pipeline::quantization);
  return g;
}

/// Doubles the value where the sum of all squares is positive, which it is.
graph::Graph with_branches() {
  GraphBuilder builder = two_layers("v");
  builder.constant("zero", Tensor::scalar(0))
      .node("ReduceSumSquare", "energy", {"u"}, {"e"}, attrs({{"keepdims", std::int64_t{0}}}))
      .node("Greater", "positive", {"e", "zero"}, {"p"})
      .node("If", "branch", {"p", "u"}, {"v"});
  graph::Graph g = builder.build({"y"});
  for (graph::Node &node : g.nodes) {
    if (node.name != "branch") continue;
    GraphBuilder doubled, negative;
    doubled.input("a", {16, 6}).constant("two", Tensor::scalar(2)).node("Mul", "double", {"a", "two"}, {"b"});
    negative.input("a", {16, 6}).node("Neg", "negate", {"a"}, {"b"});
    for (GraphBuilder *body : {&doubled, &negative})
      node.bodies.push_back(std::make_shared<const graph::Graph>(body->build({"b"})));
    node.captured = 1;
  }
  return ordered(std::move(g));
}

graph::Graph with_its_branch() {
  GraphBuilder builder = two_layers("v");
  builder.constant("two", Tensor::scalar(2)).node("Mul", "double", {"u", "two"}, {"v"});
  return ordered(builder.build({"y"}));
}

/// Keeps the rows whose first element is positive.
graph::Graph that_selects() {
  GraphBuilder builder = two_layers("v");
  builder.constant("zero", Tensor::scalar(0))
      .constant("column", Tensor::from<std::int64_t>(QTN_INT64, Shape{1}, std::vector<std::int64_t>{0}))
      .constant("all", Tensor::from<std::int64_t>(QTN_INT64, Shape{1}, std::vector<std::int64_t>{-1}))
      .node("Gather", "firsts", {"u", "column"}, {"f"}, attrs({{"axis", std::int64_t{1}}}))
      .node("Reshape", "flat", {"f", "all"}, {"g"})
      .node("Greater", "positive", {"g", "zero"}, {"p"})
      .node("Compress", "select", {"u", "p"}, {"v"}, attrs({{"axis", std::int64_t{0}}}));
  return ordered(builder.build({"y"}));
}

Samples rows_of_eight() { return normal_samples({16, 8}, kCount); }

/// Every stage that walks a network node by node runs the branch, and finds what it finds where there is no If.
void branches_are_walked(void **) {
  const graph::Graph branched = with_branches(), plain = with_its_branch();
  const Samples samples = rows_of_eight();
  const auto biases = [&](const graph::Graph &g, graph::Graph &quantized) {
    const PreparedModel p = calibrated(g, Config("onnx"), samples);
    quantized = convert(p, nullptr);
    const Tensor before = quantized.value(node_named(quantized, "last").inputs[2]).constant;
    correct(p, quantized, samples, {.bias = true});
    const Tensor after = quantized.value(node_named(quantized, "last").inputs[2]).constant;
    assert_false(equal(before, after));
    return after;
  };
  graph::Graph a, b;
  const Tensor of_branched = biases(branched, a), of_plain = biases(plain, b);
  assert_int_equal(of_branched.count(), of_plain.count());
  assert_true(equal(of_branched, of_plain));
}

void branched_networks_quantize(void **) {
  const graph::Graph g = with_branches();
  for (const bool automatic : {false, true}) {
    const Attrs options = attrs({{"auto", std::int64_t{automatic}}, {"sensitivity", std::int64_t{1}}});
    const Quantized quantized = quantize(g, Config("onnx"), rows_of_eight(), &options, {});
    const double sqnr = sqnr_db(g, quantized.graph, rows_of_eight());
    if (!(sqnr > 25)) fail_test("the quantized network has ", sqnr, " dB");
  }
}

/// The rows that are left are not the same ones: nothing reads beyond the fewer of them, and nothing agrees.
void selected_rows_differ(void **) {
  const graph::Graph g = that_selects();
  Config config("onnx");
  const Attrs three_bits = attrs({{"weight_bits", std::int64_t{3}}});
  config.set("*", &three_bits);
  const Samples samples = rows_of_eight();
  const PreparedModel p = calibrated(g, config, samples);
  graph::Graph quantized = convert(p, nullptr);
  std::size_t fewer = 0, more = 0;
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    const std::int64_t want = graph::evaluate(g, inputs)[0].dim(0), got = graph::evaluate(quantized, inputs)[0].dim(0);
    fewer += got < want;
    more += got > want;
  }
  if (fewer == 0 || more == 0) fail_test("the test is void: ", fewer, " have fewer rows and ", more, " have more");
  const double before = sqnr_db(g, quantized, samples);
  if (!(before > -3 && before < 10)) fail_test("different rows have ", before, " dB");
  correct(p, quantized, samples, {.rounding = Rounding::adaround, .bias = true});
  measure_sensitivity(p.graph, quantized, samples);
  sqnr_db(g, quantized_only(p.graph, quantized, nodes_that_round(quantized)), samples);
  Targets targets;
  targets.top1 = 1.0;
  const double top1 = *Goal(g, samples, samples, targets).reached(quantized).top1;
  if (!(top1 >= 0 && top1 < 1)) fail_test("of different rows, a part of ", top1, " agrees");
}

void noise_of_other_shapes(void **) {
  const auto floats = [](const std::vector<float> &values) {
    return Tensor::from<float>(QTN_FLOAT32, Shape{static_cast<std::int64_t>(values.size())}, values);
  };
  for (const bool longer : {false, true}) {
    Noise noise;
    const Tensor two = floats({3, 4}), three = floats({3, 4, 1});
    longer ? noise.add(two, three) : noise.add(three, two);
    assert_true(noise.signal == (longer ? 25 : 26) && noise.power == (longer ? 26 : 25));
    assert_true(noise.noise == 51 && noise.product == 0);
  }
  Noise nothing;
  nothing.add(floats({}), floats({2}));
  assert_true(nothing.signal == 0 && nothing.noise == 4 && nothing.sqnr_db() < 0);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(branches_are_walked),
      cmocka_unit_test(branched_networks_quantize),
      cmocka_unit_test(selected_rows_differ),
      cmocka_unit_test(noise_of_other_shapes),
  };
  return cmocka_run_group_tests_name("varying_shapes", tests, nullptr, nullptr);
}
