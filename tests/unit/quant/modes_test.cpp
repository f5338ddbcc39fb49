// SPDX-License-Identifier: Apache-2.0
// "mode": activations on grids of samples, on grids of every run, and in float, in one network.
#include <array>
#include <cstring>

#include "graph/integer.hpp"
#include "networks.hpp"
#include "onnx/onnx.hpp"
#include "quant/quantize.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights_only.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// A convolution, two products, a recurrent layer, and one more product behind it.
graph::Graph everything() {
  GraphBuilder b;
  b.input("x", {12, 4, 8}).constant("w", normal({16, 4, 1}, 1, 0.3f)).constant("u", normal({8, 24}, 2, 0.3f));
  b.constant("v", normal({24, 40}, 3, 0.3f)).constant("bias", normal({40}, 4));
  b.constant("wl", normal({1, 80, 40}, 5, 0.2f)).constant("rl", normal({1, 80, 20}, 6, 0.2f));
  b.constant("head", normal({20, 6}, 7, 0.3f))
      .constant("axis", Tensor::from<std::int64_t>(QTN_INT64, {1}, std::array<std::int64_t, 1>{1}));
  b.node("Conv", "conv", {"x", "w"}, {"c"})
      .node("MatMul", "first", {"c", "u"}, {"f"})
      .node("Tanh", "tanh", {"f"}, {"t"});
  b.node("MatMul", "second", {"t", "v"}, {"s"}).node("Add", "add", {"s", "bias"}, {"a"});
  b.node("LSTM", "lstm", {"a", "wl", "rl"}, {"l"}, attrs({{"hidden_size", std::int64_t{20}}}));
  b.node("Squeeze", "squeeze", {"l", "axis"}, {"z"}).node("MatMul", "head", {"z", "head"}, {"y"});
  return b.build({"y"});
}

bool same_bytes(const Tensor &a, const Tensor &b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

const Samples kSamples = normal_samples({12, 4, 8}, 9);

Config with_modes(std::initializer_list<std::pair<const char *, const char *>> modes) {
  Config config("onnx");
  for (const auto &[selector, mode] : modes) {
    const Attrs settings = attrs({{"mode", mode}});
    config.set(selector, &settings);
  }
  return config;
}

graph::IntegerForm form_of(const graph::Graph &g, const char *name) {
  return graph::integer_form(g, node_named(g, name));
}

graph::Graph quantized(const Config &config) { return quantize(everything(), config, kSamples, nullptr, {}).graph; }

void modes_are_mixed(void **) {
  using enum graph::IntegerForm;
  const graph::Graph real = everything();
  const graph::Graph g =
      quantized(with_modes({{"op:MatMul", "dynamic"}, {"op:LSTM", "weights_only"}, {"node:head", "weights_only"}}));
  assert_true(form_of(g, "conv") == linear);
  assert_true(form_of(g, "first") == dynamic && form_of(g, "lstm") == recurrent);
  assert_true(form_of(g, "head") == none);
  assert_true(g.value(node_named(g, "head").inputs[1]).constant.dtype() == QTN_INT8);
  const double sqnr = difference(real, g, kSamples).sqnr_db();
  if (sqnr < 30) fail_test(sqnr, " dB");

  const std::string file = onnx::serialize(g, {});
  const graph::Graph read_again = onnx::parse(std::as_bytes(std::span(file)), ".");
  const runtime::Session session(g, {}), again(read_again, {});
  for (std::size_t s = 0; s < kSamples.count; ++s) {
    const std::vector<Tensor> inputs = kSamples.read(s);
    assert_true(same_bytes(run(session, inputs)[0], run(again, inputs)[0]));
  }
}

/// What needs no samples has the same integers with them, where nothing is tried.
void modes_of_all_nodes_are_the_functions(void **) {
  const graph::Graph real = everything();
  const Attrs plain = attrs({{"plain", std::int64_t{1}}});
  const auto same = [&](const char *mode, const graph::Graph &want) {
    const graph::Graph got = quantize(real, with_modes({{"*", mode}}), kSamples, &plain, {}).graph;
    for (const char *name : {"first", "second", "head", "lstm"}) {
      const Tensor a = got.value(node_named(got, name).inputs[1]).constant,
                   b = want.value(node_named(want, name).inputs[1]).constant;
      if (!same_bytes(a, b)) fail_test(mode, " of ", name, " has other weights");
    }
    assert_true(form_of(got, "conv") == form_of(want, "conv") && form_of(got, "first") == form_of(want, "first"));
  };
  same("weights_only", quantize_weights(real, {}));
  same("dynamic", quantize_dynamic(real, Config("onnx"), {}));
}

void blocks_and_short_axes(void **) {
  Config config = with_modes({{"*", "weights_only"}});
  const Attrs blocks =
      attrs({{"weight_dtype", "int4"}, {"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{16}}});
  config.set("*", &blocks);
  const graph::Graph g = quantized(config);
  const auto weight = [&](const char *name) { return g.value(node_named(g, name).inputs[1]); };
  assert_true(weight("second").quantizer->per_block() && weight("second").constant.dtype() == QTN_INT4);
  assert_true(!weight("first").quantizer->per_block() && weight("first").constant.dtype() == QTN_INT4);  // 8 inputs
  assert_true(!weight("lstm").quantizer);  // 4 bits are no weights of its kernels
}

/// Also as qmodel_quantize_dynamic has it: where activations have grids, recurrent layers take weights of any bits.
void dynamic_recurrent_layers_have_few_bits(void **) {
  Config config = with_modes({{"*", "dynamic"}}), plain("onnx");
  const Attrs int4 = attrs({{"weight_dtype", "int4"}});
  config.set("*", &int4);
  plain.set("*", &int4);
  for (const graph::Graph &g : {quantized(config), quantize_dynamic(everything(), plain, {})})
    assert_true(g.value(node_named(g, "lstm").inputs[1]).constant.dtype() == QTN_INT4);
  const Attrs blocks = attrs({{"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{16}}});
  config.set("*", &blocks);
  expect_error(QTN_EUNSUPPORTED, "in blocks", [&] { quantized(config); });
}

void training_is_static(void **) {
  for (const char *mode : {"dynamic", "weights_only"})
    expect_error(QTN_EUNSUPPORTED, mode, [&] { prepare(everything(), with_modes({{"node:head", mode}}), QTN_QAT); });
}

void auto_takes_what_halves_the_noise(void **) {
  // Rows of very different size, which one grid does not suit.
  const Samples uneven{12, [](std::size_t s) {
                         Tensor x = normal({16, 32}, static_cast<unsigned>(s));
                         for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] *= i / 32 % 4 == 0 ? 40 : 0.5f;
                         return std::vector<Tensor>{x};
                       }};
  GraphBuilder b;
  b.input("x", {16, 32}).constant("w", normal({32, 64}, 1, 0.2f)).constant("v", normal({64, 8}, 2, 0.2f));
  b.node("MatMul", "a", {"x", "w"}, {"u"}).node("Relu", "relu", {"u"}, {"r"}).node("MatMul", "b", {"r", "v"}, {"y"});
  b.node("LpNormalization", "norm", {"y"}, {"z"});
  const graph::Graph real = b.build({"z"});
  const auto trials = [&](const Config &config, const Attrs &options) {
    const Quantized q = quantize(real, config, uneven, &options, {});
    std::string names;
    for (const Trial &trial : q.report.trials) names += trial.name + (trial.kept ? "! " : " ");
    return names;
  };
  const std::string tried = trials(Config("onnx"), attrs({{"auto", std::int64_t{1}}}));
  if (tried.find("dynamic!") == std::string::npos && tried.find("dynamic + observers!") == std::string::npos)
    fail_test("tried: ", tried);
  const Attrs easy = attrs({{"auto", std::int64_t{1}}, {"target_sqnr", 1.0}});
  assert_true(trials(Config("onnx"), easy).find("dynamic") == std::string::npos);
  const Config said = with_modes({{"*", "static"}});
  assert_true(trials(said, attrs({{"auto", std::int64_t{1}}})).find("dynamic") == std::string::npos);
}

void the_fastest_is_the_first_of_those_that_clocks_hardly_tell_apart(void **) {
  const auto of = [](std::vector<double> ms) { return fastest(ms); };
  assert_int_equal(of({2}), 0);
  assert_int_equal(of({2, 1.95, 1.93}), 0);
  assert_int_equal(of({2, 1.95, 1.7}), 2);
  assert_int_equal(of({2, 1.75, 1.7}), 1);
}

/// Which mode is the fastest depends on the machine, that the report and the graph agree does not.
void modes_that_reach_the_target_are_timed(void **) {
  using enum graph::IntegerForm;
  const Attrs options = attrs({{"auto", std::int64_t{1}}, {"target_sqnr", 20.0}});
  const Quantized q = quantize(everything(), Config("onnx"), kSamples, &options, {});
  std::vector<double> ms;
  std::string names;
  std::size_t kept = 9;
  for (const TimedMode &mode : q.report.modes) {
    assert_true(mode.ms > 0 && *mode.reached.sqnr_db >= 20);
    if (mode.kept) kept = ms.size();
    ms.push_back(mode.ms);
    names += mode.mode + " ";
  }
  assert_string_equal(names.c_str(), "static dynamic weights_only ");
  assert_int_equal(kept, fastest(ms));
  assert_true(*q.report.reached.sqnr_db == *q.report.modes[kept].reached.sqnr_db);
  const graph::IntegerForm forms[] = {linear, dynamic, none};
  assert_true(form_of(q.graph, "first") == forms[kept]);
  assert_true(q.report.json().find(R"("modes":[{"mode":"static","ms":)") != std::string::npos);

  const auto modes = [&](const Config &config, const Attrs &wanted) {
    return quantize(everything(), config, kSamples, &wanted, {}).report.modes.size();
  };
  assert_int_equal(modes(with_modes({{"op:Conv", "static"}}), options), 0);
  assert_int_equal(modes(Config("onnx"), attrs({{"target_sqnr", 20.0}})), 0);
  assert_int_equal(modes(Config("onnx"), attrs({{"auto", std::int64_t{1}}})), 0);
  Config config("onnx");
  for (const char *products : {"op:MatMul", "op:Gemm"}) config.set(products, nullptr);
  assert_int_equal(modes(config, options), 0);
}

graph::Graph for_target(const Config &config, double sqnr_db) {
  const Attrs target = attrs({{"target_sqnr", sqnr_db}});
  return quantize(everything(), config, kSamples, &target, {}).graph;
}

void recurrent_layers_are_quantized_for_a_target_that_lets_them(void **) {
  using enum graph::IntegerForm;
  assert_true(form_of(for_target(Config("onnx"), 15), "lstm") == recurrent);
  assert_true(form_of(for_target(with_modes({{"op:Conv", "static"}}), 15), "lstm") == none);
}

/// Weights in blocks are nothing that a dynamic layer takes: it is left out, and the rest goes on.
void candidates_that_take_no_blocks_are_left_out(void **) {
  Config config("onnx");
  const Attrs blocks =
      attrs({{"weight_dtype", "int4"}, {"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{16}}});
  config.set("*", &blocks);
  const Attrs options = attrs({{"auto", std::int64_t{1}}, {"target_sqnr", 60.0}});
  const Quantized q = quantize(everything(), config, kSamples, &options, {});
  assert_true(q.graph.value(node_named(q.graph, "lstm").inputs[1]).constant.dtype() == QTN_FLOAT32);
  for (const Trial &trial : q.report.trials)
    for (const char *name : {"dynamic", "recurrent"})
      if (trial.name.find(name) != std::string::npos) fail_test(trial.name, " was tried");
}

/// What the configuration leaves in float, none of the candidates quantizes.
void candidates_leave_rules_alone(void **) {
  using enum graph::IntegerForm;
  for (const char *selector : {"op:LSTM", "node:lstm", "*"}) {
    Config config("onnx");
    config.set(selector, nullptr);
    if (form_of(for_target(config, 15), "lstm") != none) fail_test(selector, " is quantized");
  }
  Config config("onnx");
  config.set("op:MatMul", nullptr);
  const Attrs automatic = attrs({{"auto", std::int64_t{1}}});
  const Quantized q = quantize(everything(), config, kSamples, &automatic, {});
  assert_true(form_of(q.graph, "first") == none);
  for (const Trial &trial : q.report.trials)
    if (trial.name.find("dynamic") != std::string::npos) fail_test(trial.name, " was tried");
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(modes_are_mixed),
      cmocka_unit_test(modes_of_all_nodes_are_the_functions),
      cmocka_unit_test(blocks_and_short_axes),
      cmocka_unit_test(dynamic_recurrent_layers_have_few_bits),
      cmocka_unit_test(training_is_static),
      cmocka_unit_test(auto_takes_what_halves_the_noise),
      cmocka_unit_test(the_fastest_is_the_first_of_those_that_clocks_hardly_tell_apart),
      cmocka_unit_test(modes_that_reach_the_target_are_timed),
      cmocka_unit_test(recurrent_layers_are_quantized_for_a_target_that_lets_them),
      cmocka_unit_test(candidates_that_take_no_blocks_are_left_out),
      cmocka_unit_test(candidates_leave_rules_alone),
  };
  return cmocka_run_group_tests_name("modes", tests, nullptr, nullptr);
}
