// SPDX-License-Identifier: Apache-2.0
// What the report of quantize() says: tensors with what was seen of them, fusions, nodes in float.
#include <numeric>

#include "networks.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// Conv, BatchNormalization, Relu; a Pad with zeros and a Conv; Add of both; Softmax.
graph::Graph branches() {
  Attrs axis;
  axis.set("axis", std::int64_t{1});
  return GraphBuilder()
      .input("x", {1, 2, 4, 4})
      .conv("first", "x", "a", 2, 3)
      .constant("gamma", floats({3}, {0.5f, 1, 2}))
      .constant("beta", floats({3}, {0, 1, -1}))
      .constant("mean", floats({3}, {0.25f, 0, 0}))
      .constant("var", floats({3}, {1, 2, 4}))
      .node("BatchNormalization", "norm", {"a", "gamma", "beta", "mean", "var"}, {"b"})
      .node("Relu", "relu", {"b"}, {"c"})
      .constant("pads", Tensor::from<std::int64_t>(QTN_INT64, Shape{8}, std::vector<std::int64_t>(8, 0)))
      .node("Pad", "pad", {"c", "pads"}, {"d"})
      .conv("second", "d", "e", 3, 3)
      .node("Identity", "same", {"e"}, {"f"})
      .node("Add", "sum", {"f", "c"}, {"g"})
      .node("Softmax", "soft", {"g"}, {"h"}, axis)
      .conv("last", "h", "y", 3, 2)
      .build({"y"});
}

Quantized quantized(const graph::Graph &g, const Config &config, const Samples &samples,
                    const std::vector<const char *> &flags) {
  Attrs attrs;
  for (const char *flag : flags) attrs.set(flag, std::int64_t{1});
  return quantize(g, config, samples, &attrs, {});
}

void fused_into_whom(void **) {
  const QuantizationReport account = quantized(branches(), Config("onnx"), normal_samples({1, 2, 4, 4}, 2), {}).report;
  Names got;
  for (const Fusion &f : account.fused) got.insert(f.op + " " + f.node + " in " + f.into);
  expect_names(got, {"BatchNormalization norm in first", "Relu relu in first", "Pad pad in second"});
}

void float_for_a_reason(void **) {
  Config config("onnx");
  config.set("node:second", nullptr);
  const QuantizationReport account = quantized(branches(), config, normal_samples({1, 2, 4, 4}, 2), {}).report;
  Names got;
  for (const FloatNode &node : account.float_nodes) got.insert(node.node + ": " + node.reason);
  expect_names(got, {"second: configured to stay in float", "sum: its result is not read as integers",
                     "soft: the operator has no integer form"});
}

/// Where the search leaves more nodes in float than in integers, that is what has to be said; not where they are float
/// for other reasons, or because a target was asked for.
void next_step_where_most_is_float(void **) {
  QuantizationReport report;
  report.fallen = {{"conv", 12}, {"gemm", 13}};
  report.counts.all = 10, report.counts.integer = 1;
  assert_true(next_step(report).starts_with("most layers stay in float"));
  report.counts.integer = 2;
  assert_string_equal(next_step(report).c_str(), "");
  report.counts.integer = 1, report.targets.sqnr_db = 25;
  assert_string_equal(next_step(report).c_str(), "");
}

void fallen_for_a_target(void **) {
  for (const bool wide : {false, true}) {
    Attrs attrs;
    attrs.set("target_sqnr", 60.0);
    attrs.set("target_top1", 0.5);
    attrs.set("fallback", wide ? "int16" : "float");
    const QuantizationReport account =
        quantize(chain(), Config("onnx"), normal_samples({1, 2, 6, 6}, 4), &attrs, {}).report;
    assert_false(account.fallen.empty());
    for (const FallenLayer &layer : account.fallen) {
      const auto node = std::find_if(account.float_nodes.begin(), account.float_nodes.end(),
                                     [&](const FloatNode &f) { return f.node == layer.node; });
      assert_true(node != account.float_nodes.end());
      assert_string_equal(node->reason.c_str(),
                          wide ? "activations of 16 bits for accuracy" : "left in float for accuracy");
    }
    const nlohmann::json report = nlohmann::json::parse(account.json());
    assert_int_equal(report.at(wide ? "in_int16" : "in_float").size(), account.fallen.size());
    assert_int_equal(report.at(wide ? "in_float" : "in_int16").size(), 0);
    // int8 weights lose more than 60 dB, however many bits activations have.
    const nlohmann::json &sqnr = report.at("targets").at("target_sqnr"), &top1 = report.at("targets").at("target_top1");
    assert_true(sqnr.at("wanted") == 60.0 && sqnr.at("holds") == !wide);
    const double reached = sqnr.at("reached").is_null() ? INFINITY : sqnr.at("reached").get<double>();
    assert_int_equal(wide, reached < 60);
    assert_true(top1.at("wanted") == 0.5 && top1.at("holds") == true && top1.at("reached") == 1);
  }
}

/// A correction that brings outputs nearer, but predictions further away, is left out where a target is missed with it.
void corrections_keep_the_target(void **) {
  Config config("onnx");
  const Attrs int4 = attrs({{"weight_dtype", "int4"}});
  config.set("*", &int4);
  const Samples samples = normal_samples({1, 2, 6, 6}, 400);
  const auto account = [&](double target, bool correction, std::int64_t measured) {
    Attrs attrs;
    attrs.set("target_top1", target);
    attrs.set("bias_correction", std::int64_t{correction});
    attrs.set("gptq", std::int64_t{0});
    attrs.set("measured_samples", measured);
    return quantize(chain(), config, samples, &attrs, {}).report;
  };
  std::size_t found = 0;
  for (std::int64_t measured = 4; measured <= 24; measured += 2) {
    const QuantizationReport plain = account(0.01, false, measured), corrected = account(0.01, true, measured);
    assert_true(corrected.fallen.empty());
    if (!corrected.bias_corrected || *corrected.reached.top1 >= *plain.reached.top1) continue;
    ++found;
    const QuantizationReport kept = account(*plain.reached.top1, true, measured);
    assert_true(!kept.bias_corrected && kept.fallen.empty());
    assert_true(*kept.reached.top1 == *plain.reached.top1);
  }
  assert_true(found > 0);
}

/// What corrections reach, no layer has to fall back for.
void corrections_spare_layers(void **) {
  Config config("onnx");
  const Attrs int4 = attrs({{"weight_dtype", "int4"}});
  config.set("*", &int4);
  const Samples samples = normal_samples({1, 2, 6, 6}, 64);
  const auto account = [&](double target, bool correction) {
    Attrs attrs;
    attrs.set("target_sqnr", target);
    for (const char *key : {"gptq", "adaround", "bias_correction"}) attrs.set(key, std::int64_t{correction});
    return quantize(chain(), config, samples, &attrs, {}).report;
  };
  const double plain = *account(0, false).reached.sqnr_db, corrected = *account(0, true).reached.sqnr_db;
  if (!(corrected > plain + 1)) fail_test("plain ", plain, " dB, corrected ", corrected);
  const double target = (plain + corrected) / 2;
  assert_false(account(target, false).fallen.empty());
  const QuantizationReport spared = account(target, true);
  assert_true(spared.fallen.empty() && *spared.reached.sqnr_db >= target);
  const QuantizationReport beyond = account(corrected + 3, true);
  assert_true(!beyond.fallen.empty() && *beyond.reached.sqnr_db >= corrected + 3);
  std::size_t named = 0;  // corrections of what has fallen back, not those of before
  for (const Trial &trial : beyond.trials) named += trial.name == "bias_correction";
  assert_int_equal(named, 1);
}

const TensorOutcome &outcome_of(const QuantizationReport &account, const std::string &name) {
  for (const TensorOutcome &tensor : account.tensors)
    if (tensor.name == name) return tensor;
  fail_test("no tensor ", name);
  return account.tensors[0];
}

/// Counts of the report against the values themselves, with every way to choose observers.
void what_was_seen(void **) {
  const std::size_t count = 6;
  const Samples samples = {count, [](std::size_t i) {
                             Tensor x = normal({1, 2, 6, 6}, static_cast<unsigned>(i));
                             for (std::int64_t v = 0; v < x.count(); v += 3) x.as<float>()[v] = 0;
                             return std::vector<Tensor>{x};
                           }};
  std::vector<float> all;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor x = samples.read(i)[0];
    all.insert(all.end(), x.as<const float>(), x.as<const float>() + x.count());
  }
  for (const char *flag : {"histograms", "auto"}) {
    const QuantizationReport account = quantized(chain(), Config("onnx"), samples, {"histograms", flag}).report;
    const TensorOutcome &x = outcome_of(account, "x");
    const Distribution &seen = *x.seen;
    assert_int_equal(seen.zeros, std::count(all.begin(), all.end(), 0.0f));
    assert_true(seen.min() == *std::min_element(all.begin(), all.end()));
    assert_true(seen.max() == *std::max_element(all.begin(), all.end()));
    assert_in_range(seen.bins.counts.size(), 64, 128);
    const float width = std::ldexp(1.0f, seen.bins.exponent);
    for (std::size_t i = 0; i < seen.bins.counts.size(); ++i) {
      const float from = static_cast<float>(seen.bins.first + static_cast<std::int64_t>(i)) * width;
      assert_int_equal(seen.bins.counts[i], std::count_if(all.begin(), all.end(), [&](float v) {
                         return v != 0 && v >= from && v < from + width;
                       }));
    }
    const TensorOutcome &pooled = outcome_of(account, "d");
    assert_true(pooled.members == (std::vector<std::string>{"d", "e"}));  // MaxPool moves integers
    for (const TensorOutcome &tensor : account.tensors) {
      const auto &counts = tensor.seen->bins.counts;
      if (tensor.node == "third") assert_int_equal(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), 24);
    }
  }
}

/// The report does not change the model.
void looking_changes_nothing(void **) {
  const Samples samples = normal_samples({1, 2, 6, 6}, 4);
  const Quantized plain = quantized(chain(), Config("onnx"), samples, {});
  const Quantized watched = quantized(chain(), Config("onnx"), samples, {"histograms", "sensitivity"});
  for (const TensorOutcome &tensor : plain.report.tensors) assert_false(tensor.seen.has_value());
  for (std::size_t v = 0; v < plain.graph.values.size(); ++v) {
    const graph::Value &a = plain.graph.values[v], &b = watched.graph.values[v];
    assert_string_equal(a.name.c_str(), b.name.c_str());
    assert_true(!a.quantizer == !b.quantizer && (!a.quantizer || *a.quantizer == *b.quantizer));
  }
}

/// [low, high] are the reals of the first and the last integer.
void json_of_a_tensor(void **) {
  const QuantizationReport account =
      quantized(chain(), Config("onnx"), normal_samples({1, 2, 6, 6}, 2), {"histograms"}).report;
  const nlohmann::json report = nlohmann::json::parse(account.json());
  for (const nlohmann::json &tensor : report.at("tensors")) {
    const double scale = tensor.at("scale"), zero = tensor.at("zero_point");
    const bool weight = tensor.contains("weight_of");
    assert_int_equal(weight, !tensor.contains("members"));
    assert_true(tensor.at("dtype") == (weight ? "int8" : "uint8"));
    assert_true(tensor.at("low") == ((weight ? -128 : 0) - zero) * scale);
    assert_true(tensor.at("high") == ((weight ? 127 : 255) - zero) * scale);
    assert_true(tensor.at("min") <= tensor.at("max") && tensor.at("histogram").at("counts").size() <= 128);
    if (weight) assert_true(tensor.at("grids") > 1);
  }
  assert_int_equal(report.at("tensors").size(), account.tensors.size());
}

/// A grid by hand is one of the report's, however the model is made, and stays where its layer falls back.
void grids_by_hand(void **) {
  Config config("onnx");
  const Attrs quantize_y = test::attrs({{"quantize", std::int64_t{1}}});
  config.set("tensor:y", &quantize_y);
  const Samples samples = normal_samples({1, 2, 6, 6}, 6);
  for (const std::vector<const char *> &flags : std::vector<std::vector<const char *>>{
           {"plain"}, {}, {"auto", "histograms"}, {"adaround", "absorb_bias", "sensitivity"}}) {
    const Quantized made = quantized(chain(), config, samples, flags);
    const TensorOutcome &y = outcome_of(made.report, "y");
    assert_true(*y.grid == *made.graph.value(made.graph.outputs[0]).quantizer);
    const nlohmann::json report = nlohmann::json::parse(made.report.json());
    const auto listed = std::count_if(
        report.at("tensors").begin(), report.at("tensors").end(),
        [&](const auto &tensor) { return tensor.at("name") == "y" && tensor.at("scale") == y.grid->scales()[0]; });
    assert_int_equal(listed, 1);
  }
  for (const char *fallback : {"float", "int16"}) {
    Attrs attrs;
    attrs.set("target_sqnr", 60.0);
    attrs.set("fallback", fallback);
    const Quantized made = quantize(chain(), config, samples, &attrs, {});
    assert_false(made.report.fallen.empty());
    assert_non_null(made.graph.value(made.graph.outputs[0]).quantizer.get());
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(corrections_keep_the_target),
      cmocka_unit_test(corrections_spare_layers),
      cmocka_unit_test(fused_into_whom),
      cmocka_unit_test(float_for_a_reason),
      cmocka_unit_test(next_step_where_most_is_float),
      cmocka_unit_test(fallen_for_a_target),
      cmocka_unit_test(what_was_seen),
      cmocka_unit_test(looking_changes_nothing),
      cmocka_unit_test(json_of_a_tensor),
      cmocka_unit_test(grids_by_hand),
  };
  return cmocka_run_group_tests_name("outcome", tests, nullptr, nullptr);
}
