// SPDX-License-Identifier: Apache-2.0
// Choices made by measuring: the observer of each tensor, the layers that stay in float.
#include <algorithm>
#include <array>

#include "networks.hpp"
#include "quant/quantize.hpp"
#include "quant/search/observers.hpp"
#include "quant/search/precision.hpp"
#include "quant/search/sensitivity.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

const Samples kSamples = normal_samples({1, 2, 6, 6}, 16);

std::vector<std::string> names_of(const graph::Graph &g) {
  std::vector<std::string> names;
  for (const graph::Node &node : g.nodes) names.push_back(node.name);
  return names;
}

/// Without a value far outside, clipping costs more than it gains; with one, the whole range costs more.
void outliers_are_clipped(void **) {
  const graph::Graph g = chain();
  for (const bool outlier : {false, true}) {
    const Samples samples = {4, [&](std::size_t s) {
                               Tensor x = normal({1, 2, 6, 6}, static_cast<unsigned>(s + 1));
                               for (std::int64_t i = 0; i < x.count(); ++i)
                                 x.as<float>()[i] = std::clamp(x.as<float>()[i], -1.0f, 1.0f);
                               if (outlier && s == 2) x.as<float>()[7] = 500;
                               return std::vector<Tensor>{x};
                             }};
    PreparedModel p = prepare(g, Config("onnx"));
    const std::vector<ObserverChoice> choices = choose_observers(p, samples, some_of(samples, 2));  // samples 0 and 2
    const ObserverChoice &x = choices[0];
    assert_string_equal(x.tensor.c_str(), "x");
    for (const ObserverLoss &c : x.candidates) assert_true(x.candidates[x.chosen].loss <= c.loss);
    assert_true(x.candidates[0].observer == "minmax" && x.candidates[0].loss > 0);
    const auto &kept =
        p.observers[static_cast<std::size_t>(p.placement.group[static_cast<std::size_t>(p.graph.inputs[0])])];
    assert_true(kept->kind() == x.candidates[x.chosen].observer);
    if (!outlier) assert_true(x.candidates[x.chosen].loss > 0.8 * x.candidates[0].loss);
    convert(p, nullptr);
  }
}

/// One sample without the outlier: an observer that ignores it wins by far.
void rare_outliers_do_not_decide(void **) {
  const Samples samples = {64, [&](std::size_t s) {
                             Tensor x = normal({1, 2, 6, 6}, static_cast<unsigned>(s + 1), 0.3f);
                             if (s == 63) x.as<float>()[7] = 100;
                             return std::vector<Tensor>{x};
                           }};
  PreparedModel p = prepare(chain(), Config("onnx"));
  const ObserverChoice x = choose_observers(p, samples, some_of(samples, 16))[0];
  assert_true(x.chosen != 0);
  assert_true(x.candidates[x.chosen].loss < x.candidates[0].loss / 2);
}

/// Entropy begins with 128 bins and has at most 2048; the others are compared without it.
void observers_that_do_not_take_the_settings(void **) {
  const Samples samples = some_of(kSamples, 4);
  for (const auto &[bins, count] : {std::pair(128, 5), std::pair(100, 4), std::pair(4096, 4)}) {
    Config config("onnx");
    const Attrs settings = attrs({{"bins", std::int64_t{bins}}});
    config.set("*", &settings);
    PreparedModel p = prepare(chain(), config);
    for (const ObserverChoice &choice : choose_observers(p, samples, samples)) {
      assert_int_equal(choice.candidates.size(), count);
      assert_true((choice.candidates.back().observer == "entropy") == (count == 5));
      for (const ObserverLoss &c : choice.candidates) assert_true(choice.candidates[choice.chosen].loss <= c.loss);
    }
    convert(p, nullptr);
  }
}

/// Rows of a table lie on the table's grid, so that no sample shows a value to an observer.
void rows_of_a_table_are_not_observed(void **) {
  GraphBuilder b;
  b.input("tokens", {1, 5}, QTN_INT64).constant("table", normal({9, 6}, 1)).constant("w", normal({4, 5, 3}, 2, 0.3f));
  b.node("Gather", "embedding", {"table", "tokens"}, {"x"}).node("Conv", "conv", {"x", "w"}, {"y"});
  const graph::Graph g = b.build({"y"});
  const Samples samples = {4, [](std::size_t s) {
                             const auto n = static_cast<std::int64_t>(s);
                             return std::vector<Tensor>{Tensor::from<std::int64_t>(
                                 QTN_INT64, {1, 5}, std::array{n, n + 1, n + 2, n + 3, n + 5})};
                           }};
  PreparedModel p = prepare(g, Config("onnx"));
  for (const ObserverChoice &choice : choose_observers(p, samples, samples))
    for (const ObserverLoss &c : choice.candidates) assert_true(c.loss > 0 && c.loss < 0.1);
  assert_true(value_named(convert(p, nullptr), "x").quantizer != nullptr);
  // Rows that a float table gives have its range, too.
  const PreparedModel plain = calibrated(g, Config("onnx"), samples);
  const graph::Graph integers = convert(plain, nullptr),
                     table_in_float = convert(to_float(plain)({"embedding"}), nullptr);
  assert_true(value_named(table_in_float, "table").quantizer == nullptr);
  assert_true(value_named(table_in_float, "x").quantizer->scale() == value_named(integers, "x").quantizer->scale());
  const Attrs automatic = attrs({{"auto", std::int64_t{1}}});
  assert_true(difference(g, quantize(g, Config("onnx"), samples, &automatic, {}).graph, samples).sqnr_db() > 30);
}

/// What a node costs alone, against a model that is converted with all others in float.
void damage_alone(void **) {
  const PreparedModel p = calibrated(chain(), Config("onnx"), kSamples);
  const graph::Graph q = convert(p, nullptr);
  const std::vector<Sensitivity> all = measure_sensitivity(p.graph, q, kSamples);
  assert_int_equal(all.size(), 5);  // four layers and LeakyRelu
  for (const Sensitivity &damage : all) {
    std::vector<std::string> others = names_of(p.graph);
    std::erase(others, q.nodes[damage.node].name);
    const PreparedModel single = to_float(p)(others);
    const double want = difference(p.graph, convert(single, nullptr), kSamples).sqnr_db();
    if (q.nodes[damage.node].name == "leaky") {
      assert_true(want > 110);  // no node asks for integers then
      continue;
    }
    // Alone a node's result is on its grid too, which in the converted model only a reader in integers asks for.
    if (damage.alone.sqnr_db() > want + 0.1 || damage.alone.sqnr_db() < want - 6)
      fail_test(q.nodes[damage.node].name, ": ", damage.alone.sqnr_db(), " dB, converted ", want);
    assert_true(damage.alone.cosine() > 0.999 && damage.alone.cosine() < 1);
  }
  assert_true(all[4].accumulated.sqnr_db() < all[0].accumulated.sqnr_db());
  const double whole = difference(p.graph, q, kSamples).sqnr_db();
  assert_true(std::fabs(all[4].accumulated.sqnr_db() - whole) < 0.5);
  const Goal goal(p.graph, kSamples, kSamples, {});
  std::vector<std::size_t> every;
  for (const Sensitivity &damage : all) {
    const double alone = goal.noise_of(quantized_only(p.graph, q, std::span(&damage.node, 1))).sqnr_db();
    if (std::fabs(alone - damage.alone.sqnr_db()) > 0.5)
      fail_test(q.nodes[damage.node].name, ": ", damage.alone.sqnr_db(), " dB node by node, ", alone,
                " in one network");
    every.push_back(damage.node);
  }
  assert_true(nodes_that_round(q) == every);
  assert_true(std::fabs(goal.noise_of(quantized_only(p.graph, q, every)).sqnr_db() - whole) < 0.01);
}

std::vector<std::string> names_of(const std::vector<FallenLayer> &layers) {
  std::vector<std::string> names;
  for (const FallenLayer &layer : layers) names.push_back(layer.node);
  return names;
}

Goal goal_of(const PreparedModel &p, const Targets &targets) { return {p.graph, kSamples, kSamples, targets}; }

void targets_are_reached_with_few_layers(void **) {
  const PreparedModel all = calibrated(chain(), Config("onnx"), kSamples);
  const double whole = difference(all.graph, convert(all, nullptr), kSamples).sqnr_db();
  PreparedModel easy = calibrated(chain(), Config("onnx"), kSamples);
  assert_true(reach(easy, goal_of(all, {whole - 1, {}}), to_float(easy), {}).empty());

  PreparedModel p = calibrated(chain(), Config("onnx"), kSamples);
  const Goal goal = goal_of(all, {whole + 3, {}});
  const std::vector<std::string> found = names_of(reach(p, goal, to_float(p), {}));
  assert_false(found.empty());
  const graph::Graph g = convert(p, nullptr);
  const double now = difference(p.graph, g, kSamples).sqnr_db();
  assert_true(now >= whole + 3 && std::fabs(now - *goal.reached(g).sqnr_db) < 1e-3);
  for (const std::string &name : found) {
    std::vector<std::string> fewer = found;
    std::erase(fewer, name);
    assert_true(difference(all.graph, convert(to_float(all)(fewer), nullptr), kSamples).sqnr_db() < whole + 3);
  }
  PreparedModel hopeless = calibrated(chain(), Config("onnx"), kSamples);
  const Goal exact = goal_of(all, {400, {}});
  reach(hopeless, exact, to_float(hopeless), {});
  assert_true(std::isinf(*exact.reached(convert(hopeless, nullptr)).sqnr_db));
}

constexpr std::size_t kMany = 120, kLoud = 77;

/// Products with hardly more than the identity. One has a channel ten thousand times as large as the others, which is not
/// read: its grid leaves nothing of these.
graph::Graph many_layers() {
  GraphBuilder b;
  b.input("v0", {1, 4});
  for (std::size_t i = 0; i < kMany; ++i) {
    const std::string n = std::to_string(i);
    const Tensor weight = normal({4, 4}, static_cast<unsigned>(i), 0.05f), bias(QTN_FLOAT32, {4});
    std::fill_n(bias.as<float>(), 4, 0.0f);
    for (std::size_t k = 0; k < 4; ++k) weight.as<float>()[5 * k] = 1;
    if (i == kLoud) bias.as<float>()[3] = 1e4f;
    if (i == kLoud + 1)
      for (std::size_t k = 0; k < 4; ++k) weight.as<float>()[4 * k + 3] = 0;
    b.constant("w" + n, weight);
    b.constant("b" + n, bias);
    b.node("Gemm", "layer" + n, {"v" + n, "w" + n, "b" + n}, {"v" + std::to_string(i + 1)},
           attrs({{"transB", std::int64_t{1}}}));
  }
  return b.build({"v" + std::to_string(kMany)});
}

void many_layers_are_ranked_in_few_runs(void **) {
  const Samples samples = normal_samples({1, 4}, 4);
  PreparedModel p = calibrated(many_layers(), Config("onnx"), samples);
  const double whole = difference(p.graph, convert(p, nullptr), samples).sqnr_db();
  assert_true(whole < 5);
  const Goal goal(p.graph, samples, samples, {.sqnr_db = 20, .top1 = {}});
  std::size_t runs = 0;
  const std::vector<std::string> found =
      names_of(reach(p, goal, to_float(p), [&](const char *, std::size_t done, std::size_t total) {
        assert_true(++runs == done && done <= total);
      }));
  assert_true(runs <= 48 && found.size() < kMany / 4);
  assert_true(std::ranges::find(found, "layer" + std::to_string(kLoud + 1)) != found.end());
  assert_true(*goal.reached(convert(p, nullptr)).sqnr_db >= 20);
}

/// Much is cut off, so that the largest value moves on some samples.
PreparedModel coarse() {
  Config config("onnx");
  const Attrs cut = attrs({{"weight_dtype", "int4"}, {"observer", "percentile"}, {"percentile", 80.0}});
  config.set("*", &cut);
  return calibrated(chain(), config, kSamples);
}

/// The part of the samples on which the largest of the five outputs is the float model's.
double agreement(const graph::Graph &a, const graph::Graph &b) {
  const auto largest = [](const graph::Graph &g, const std::vector<Tensor> &inputs) {
    const std::vector<float> y = float_values(graph::evaluate(g, inputs)[0], "y");
    return std::max_element(y.begin(), y.end()) - y.begin();
  };
  double same = 0;
  for (std::size_t s = 0; s < kSamples.count; ++s) {
    const std::vector<Tensor> inputs = kSamples.read(s);
    same += largest(a, inputs) == largest(b, inputs);
  }
  return same / static_cast<double>(kSamples.count);
}

void largest_values_stay_where_they_are(void **) {
  const PreparedModel all = coarse();
  const double whole = agreement(all.graph, convert(all, nullptr));
  if (!(whole > 0.3 && whole < 0.95)) fail_test("top-1 agreement ", whole);
  assert_true(*goal_of(all, {{}, 1.0}).reached(convert(all, nullptr)).top1 == whole);
  PreparedModel easy = coarse();
  assert_true(reach(easy, goal_of(all, {{}, whole}), to_float(easy), {}).empty());

  PreparedModel p = coarse();
  const std::vector<std::string> found = names_of(reach(p, goal_of(all, {{}, 1.0}), to_float(p), {}));
  assert_true(!found.empty() && agreement(all.graph, convert(p, nullptr)) == 1);
  for (const std::string &name : found) {
    std::vector<std::string> fewer = found;
    std::erase(fewer, name);
    assert_true(agreement(all.graph, convert(to_float(all)(fewer), nullptr)) < 1);
  }

  // The harder of two targets decides.
  const double db = difference(all.graph, convert(p, nullptr), kSamples).sqnr_db();
  for (const Targets &both : {Targets{db + 6, whole}, Targets{db - 20, 1.0}}) {
    PreparedModel q = coarse();
    const Goal goal = goal_of(all, both);
    const std::vector<std::string> layers = names_of(reach(q, goal, to_float(q), {}));
    const Targets reached = goal.reached(convert(q, nullptr));
    assert_true(*reached.sqnr_db >= *both.sqnr_db && *reached.top1 >= *both.top1);
    assert_true((layers == found) == (*both.top1 == 1));
  }
}

/// Rows of all dimensions but the last count each for itself; of equal values the first is the largest.
void rows_and_ties(void **) {
  GraphBuilder builder;
  const graph::Graph same = builder.input("x", {-1, 2, 3}).node("Identity", "i", {"x"}, {"y"}).build({"y"});
  GraphBuilder other;
  other.input("x", {-1, 2, 3}).constant("k", floats({2, 3}, {0.5f, 0, 0, 0, 1, 0}));
  const graph::Graph moved = other.node("Add", "a", {"x", "k"}, {"y"}).build({"y"});
  const Samples samples = {2, [](std::size_t) {
                             return std::vector<Tensor>{floats({2, 2, 3}, {1, 1, 0, 0, 0, 0, 5, 1, 5, 7, 1, 0})};
                           }};
  const Targets top1{{}, 0.5};
  assert_true(*Goal(same, samples, samples, top1).reached(same).top1 == 1);
  assert_true(*Goal(same, samples, samples, top1).reached(moved).top1 == 0.75);

  const Samples indices = {1, [](std::size_t) { return std::vector<Tensor>{floats({1, 2, 3}, {1, 2, 3, 4, 5, 6})}; }};
  GraphBuilder whole;
  const graph::Graph classes = whole.input("x", {-1, 2, 3}).node("ArgMax", "m", {"x"}, {"y"}).build({"y"});
  expect_error(QTN_EUNSUPPORTED, "target_top1 is of rows of floats, output \"y\" is int64 of shape 1x2x3",
               [&] { Goal(classes, indices, indices, top1); });
}

/// As if the configuration had said so before calibration.
void wide_layers_are_those_of_a_config(void **) {
  for (const char *recipe : {"onnx", "fbgemm", "nvidia"}) {
    Config config(recipe), wide(recipe);
    const Attrs int16 = attrs({{"activation_dtype", "int16"}});
    for (const char *tensor : {"tensor:e", "tensor:h"}) wide.set(tensor, &int16);  // what "third" reads and makes
    const PreparedModel p = calibrated(chain(), config, kSamples), direct = calibrated(chain(), wide, kSamples);
    const PreparedModel fallen = to_int16(p, kSamples)({"third"});
    const graph::Graph want = convert(direct, nullptr), got = convert(fallen, nullptr), before = convert(p, nullptr);
    for (std::size_t v = 0; v < want.values.size(); ++v) {
      const QuantizerPtr &a = want.values[v].quantizer, &b = got.values[v].quantizer, &c = before.values[v].quantizer;
      assert_true(!a == !b && (!a || *a == *b));
      const std::string &name = want.values[v].name;
      const bool of_third = name == "d" || name == "e" || name == "g" || name == "h";
      if (c && !want.values[v].is_constant())
        assert_true(of_third ? b->dtype() == QTN_INT16 : b->dtype() == c->dtype() && *b == *c);
    }
    assert_true(fallen.samples == p.samples);
  }
}

/// Scales that are known beforehand are of 8 bits: with 16 the tensor is looked at.
void known_scales_are_observed_when_wide(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 4, 3, 3}).conv("a", "x", "u", 4, 4).node("Sigmoid", "s", {"u"}, {"v"});
  const graph::Graph g = builder.conv("b", "v", "y", 4, 4).build({"y"});
  const Samples samples = normal_samples({1, 4, 3, 3}, 4);
  const PreparedModel p = calibrated(g, Config("tflite"), samples);
  assert_non_null(p.placement.groups[2].fixed.get());
  const QuantizerPtr grid = value_named(convert(to_int16(p, samples)({"b"}), nullptr), "v").quantizer;
  assert_true(grid->dtype() == QTN_INT16 && grid->scale() < 1.01f / 65535);
}

void int16_has_an_end(void **) {
  PreparedModel p = calibrated(chain(), Config("onnx"), kSamples);
  const PreparedModel before = calibrated(chain(), Config("onnx"), kSamples);
  const double whole = difference(p.graph, convert(p, nullptr), kSamples).sqnr_db();
  const Goal near = goal_of(before, {whole + 2, {}}), far = goal_of(before, {200, {}});
  const std::vector<std::string> some = names_of(reach(p, near, to_int16(before, kSamples), {}));
  assert_true(!some.empty() && near.met_by(convert(p, nullptr)));

  PreparedModel q = calibrated(chain(), Config("onnx"), kSamples);
  const std::vector<std::string> all = names_of(reach(q, far, to_int16(before, kSamples), {}));
  assert_int_equal(all.size(), 5);
  const graph::Graph wide = convert(q, nullptr);
  assert_false(far.met_by(wide));
  assert_true(*far.reached(wide).sqnr_db > whole + 2);
}

/// Settings of a tensor do not outlive the layers for which it is in integers, and are no error then.
void tensors_with_settings_may_return_to_float(void **) {
  Config config("onnx");
  const Attrs mse = attrs({{"observer", "mse"}});
  config.set("tensor:g", &mse);
  PreparedModel p = calibrated(chain(), config, kSamples);
  const PreparedModel last_in_float = to_float(p)({"last"});
  assert_true(value_named(convert(p, nullptr), "g").quantizer != nullptr);
  assert_true(value_named(convert(last_in_float, nullptr), "g").quantizer == nullptr);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(outliers_are_clipped),
      cmocka_unit_test(rare_outliers_do_not_decide),
      cmocka_unit_test(observers_that_do_not_take_the_settings),
      cmocka_unit_test(rows_of_a_table_are_not_observed),
      cmocka_unit_test(damage_alone),
      cmocka_unit_test(targets_are_reached_with_few_layers),
      cmocka_unit_test(many_layers_are_ranked_in_few_runs),
      cmocka_unit_test(largest_values_stay_where_they_are),
      cmocka_unit_test(rows_and_ties),
      cmocka_unit_test(wide_layers_are_those_of_a_config),
      cmocka_unit_test(known_scales_are_observed_when_wide),
      cmocka_unit_test(int16_has_an_end),
      cmocka_unit_test(tensors_with_settings_may_return_to_float),
  };
  return cmocka_run_group_tests_name("search", tests, nullptr, nullptr);
}
