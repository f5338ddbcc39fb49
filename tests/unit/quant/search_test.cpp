// SPDX-License-Identifier: Apache-2.0
// Choices made by measuring: the observer of each tensor, the layers that stay in float.
#include <algorithm>

#include "networks.hpp"
#include "quant/search/damage.hpp"
#include "quant/search/observers.hpp"
#include "quant/search/precision.hpp"

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
    Prepared p = prepare(g, Config("onnx"));
    const std::vector<ObserverChoice> choices = choose_observers(p, samples, 2);  // samples 0 and 2
    const ObserverChoice &x = choices[0];
    assert_string_equal(x.tensor.c_str(), "x");
    for (const Candidate &c : x.candidates) assert_true(x.candidates[x.chosen].loss <= c.loss);
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
  Prepared p = prepare(chain(), Config("onnx"));
  const ObserverChoice x = choose_observers(p, samples, 16)[0];
  assert_true(x.chosen != 0);
  assert_true(x.candidates[x.chosen].loss < x.candidates[0].loss / 2);
}

/// What a node costs alone, against a model that is converted with all others in float.
void damage_alone(void **) {
  const Prepared p = calibrated(chain(), Config("onnx"), kSamples);
  const graph::Graph q = convert(p, nullptr);
  const std::vector<Damage> all = measure_damage(p.graph, q, kSamples);
  assert_int_equal(all.size(), 5);  // four layers and LeakyRelu
  for (const Damage &damage : all) {
    std::vector<std::string> others = names_of(p.graph);
    std::erase(others, q.nodes[damage.node].name);
    const Prepared single = leave_in_float(p, others);
    const double want = difference(p.graph, convert(single, nullptr), kSamples).sqnr_db();
    if (q.nodes[damage.node].name == "leaky") {
      assert_true(want > 110);  // nobody asks it for integers then
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
  assert_true(std::fabs(noise_without(p.graph, q, kSamples, {}).sqnr_db() - whole) < 0.5);
}

void targets_are_reached_with_few_layers(void **) {
  const Prepared all = calibrated(chain(), Config("onnx"), kSamples);
  const double whole = difference(all.graph, convert(all, nullptr), kSamples).sqnr_db();
  Prepared easy = calibrated(chain(), Config("onnx"), kSamples);
  assert_true(reach(easy, kSamples, whole - 1).in_float.empty());

  Prepared p = calibrated(chain(), Config("onnx"), kSamples);
  const Precision found = reach(p, kSamples, whole + 3);
  assert_false(found.in_float.empty());
  const double now = difference(p.graph, convert(p, nullptr), kSamples).sqnr_db();
  assert_true(now >= whole + 3 && std::fabs(now - found.sqnr_db) < 1e-6);
  for (std::size_t i = 0; i < found.in_float.size(); ++i) {
    std::vector<std::string> fewer;
    for (std::size_t k = 0; k < found.in_float.size(); ++k)
      if (k != i) fewer.push_back(found.in_float[k].node);
    const graph::Graph q = convert(leave_in_float(all, fewer), nullptr);
    assert_true(difference(all.graph, q, kSamples).sqnr_db() < whole + 3);
  }
  Prepared hopeless = calibrated(chain(), Config("onnx"), kSamples);
  assert_true(std::isinf(reach(hopeless, kSamples, 400).sqnr_db));
}

/// Settings of a tensor do not outlive the layers for which it is in integers, and are no error then.
void tensors_with_settings_may_return_to_float(void **) {
  Config config("onnx");
  const Attrs mse = attrs({{"observer", "mse"}});
  config.set("tensor:g", &mse);
  Prepared p = calibrated(chain(), config, kSamples);
  const Prepared last_in_float = leave_in_float(p, {"last"});
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
      cmocka_unit_test(damage_alone),
      cmocka_unit_test(targets_are_reached_with_few_layers),
      cmocka_unit_test(tensors_with_settings_may_return_to_float),
  };
  return cmocka_run_group_tests_name("search", tests, nullptr, nullptr);
}
