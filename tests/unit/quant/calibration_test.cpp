// SPDX-License-Identifier: Apache-2.0
// Calibration by shares: what adds up exactly, how far off the rest is, and what does not belong together.
#include "quant/calibration.hpp"

#include <cmath>
#include <cstring>

#include "base/parallel.hpp"
#include "graph_builder.hpp"
#include "quant/calibrate.hpp"
#include "quant/fingerprint.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr std::size_t kSamples = 24;

/// Sample i of growing range, so that every share has another.
Tensor sample(std::size_t i) {
  Tensor x(QTN_FLOAT32, {2, 4, 5, 5});
  for (std::int64_t k = 0; k < x.count(); ++k) {
    const auto n = static_cast<std::int64_t>(i);
    const auto v = static_cast<float>((k * 7919 + n * 104729) % 2003 - 1001) / 1001.0f;
    x.as<float>()[k] = v * std::fabs(v) * static_cast<float>(1 + (i * 5) % 17);
  }
  return x;
}

graph::Graph network() {
  GraphBuilder builder;
  builder.input("x", {-1, 4, 5, 5}).conv("a", "x", "u", 4, 4).node("Relu", "relu", {"u"}, {"v"});
  return builder.conv("b", "v", "w", 4, 4).node("Add", "add", {"v", "w"}, {"s"}).conv("c", "s", "y", 4, 4).build({"y"});
}

PreparedModel prepared(const char *observer) {
  Config config("onnx");
  const Attrs a = attrs({{"observer", observer}});
  config.set("*", &a);
  return prepare(network(), config);
}

PreparedModel calibrated(const char *observer, std::size_t begin, std::size_t end) {
  PreparedModel p = prepared(observer);
  for (; begin < end; ++begin) {
    const Tensor x = sample(begin);
    const Tensor *inputs[] = {&x};
    calibrate(p, inputs);
  }
  return p;
}

/// `count` shares one after the other.
PreparedModel merged(const char *observer, std::size_t count) {
  PreparedModel p = prepared(observer);
  for (std::size_t i = 0; i < count; ++i)
    add(p, calibration_of(calibrated(observer, kSamples * i / count, kSamples * (i + 1) / count)));
  return p;
}

std::vector<std::vector<std::byte>> state(const PreparedModel &p) {
  std::vector<std::vector<std::byte>> all;
  for (const auto &observer : p.observers) all.push_back(observer->save());
  return all;
}

void shares_add_up_exactly(void **) {
  for (const char *observer : {"minmax", "max", "mse"}) {
    const PreparedModel whole = calibrated(observer, 0, kSamples);
    for (const std::size_t count : {1, 2, 4, 5}) {
      const PreparedModel sum = merged(observer, count);
      assert_int_equal(sum.samples, kSamples);
      assert_true(state(sum) == state(whole));
    }
    assert_true(state(calibrated(observer, 0, 2)) != state(whole));
  }
}

Samples samples_of(std::size_t begin, std::size_t end) {
  Samples samples{end - begin, [begin](std::size_t i) { return std::vector<Tensor>{sample(begin + i)}; }, {}};
  for (std::size_t i = begin; i < end; ++i) samples.numbers.push_back(i);
  return samples;
}

void onlookers_see_what_they_would_alone(void **) {
  PreparedModel minmax = prepared("minmax"), percentile = observed_anew(minmax, minmax.config, "percentile"),
                mse = observed_anew(minmax, minmax.config, "mse");
  Onlooker all[] = {{minmax, samples_of(0, 9)}, {percentile, samples_of(0, 24)}, {mse, samples_of(7, 20)}};
  calibrate_together(all, samples_of(0, kSamples));
  for (const Onlooker &onlooker : all) assert_false(onlooker.refused);
  assert_true(state(minmax) == state(calibrated("minmax", 0, 9)));
  assert_true(state(percentile) == state(calibrated("percentile", 0, 24)));
  assert_true(state(mse) == state(calibrated("mse", 7, 20)));
  assert_int_equal(mse.samples, 13);
  assert_true(mse.engine && mse.engine == minmax.engine);

  const PreparedModel copy = copy_of(mse);
  assert_true(state(copy) == state(mse) && copy.samples == mse.samples);
}

/// The second of three samples has a range that no float can express.
void onlookers_that_refuse_see_no_more(void **) {
  const Shape shape{1, 4, 5, 5};
  GraphBuilder builder;
  builder.input("x", shape).input("minus_x", shape).node("Add", "add", {"x", "minus_x"}, {"zero"});
  const graph::Graph g = builder.conv("conv", "zero", "y", 4, 4).build({"y"});
  const float values[] = {1, 3e38f, 2};
  const auto alternating = [&](float value) {
    Tensor x(QTN_FLOAT32, shape);
    for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = i % 2 ? value : -value;
    return x;
  };
  const Samples samples{3, [&](std::size_t i) {
                          return std::vector<Tensor>{alternating(values[i]), alternating(-values[i])};
                        }};
  PreparedModel minmax = prepare(g, Config("onnx")), histogram = observed_anew(minmax, minmax.config, "histogram"),
                lonely = observed_anew(histogram, minmax.config, nullptr);
  Onlooker all[] = {{minmax, samples}, {histogram, samples}};
  calibrate_together(all, samples);
  assert_true(!all[0].refused && all[1].refused);
  assert_int_equal(minmax.samples, 3);
  assert_int_equal(histogram.samples, 1);

  Onlooker alone(lonely, samples);
  expect_error(QTN_EINVAL,
               "calibrate: tensor \"x\" of sample 1: observer: the range [-3e+38, 3e+38] is too wide for a histogram",
               [&] {
                 calibrate_together({&alone, 1}, samples);
               });
  assert_int_equal(lonely.samples, 1);
  assert_true(state(lonely) == state(histogram));
}

struct Histogram {
  float min, max;
  std::vector<double> cumulative;  ///< of the bins, from the first
};

/// The end of what a "histogram" saves.
Histogram histogram_of(const Observer &observer) {
  const auto bins = static_cast<std::size_t>(observer.settings().bins);
  const std::vector<std::byte> bytes = observer.save();
  const auto float_at = [&](std::size_t from_end) {
    float v;
    std::memcpy(&v, bytes.data() + bytes.size() - from_end, sizeof v);
    return v;
  };
  Histogram h{float_at(4 * bins + 16), float_at(4 * bins + 12), {}};
  double sum = 0;
  for (std::size_t i = 0; i < bins; ++i) h.cumulative.push_back(sum += static_cast<double>(float_at(4 * (bins - i))));
  return h;
}

/// The bound that docs/quantization.md states: counts lie within a bin of their values for each time that they were
/// resampled, and one more.
void histograms_add_up_nearly(void **) {
  const PreparedModel whole = calibrated("histogram", 0, kSamples);
  for (const std::size_t count : {2, 4, 5}) {
    const PreparedModel sum = merged("histogram", count);
    for (std::size_t o = 0; o < whole.observers.size(); ++o) {
      const Histogram a = histogram_of(*whole.observers[o]), b = histogram_of(*sum.observers[o]);
      assert_true(a.min == b.min && a.max == b.max);
      const std::size_t bins = a.cumulative.size(), far = 2 * (4 + count + 1);  // the range of a share grows 4 times
      const double slack = 1e-4 * a.cumulative.back();
      assert_true(std::fabs(a.cumulative.back() - b.cumulative.back()) <= slack);
      for (std::size_t i = 0; i + far < bins; ++i)
        if (a.cumulative[i] > b.cumulative[i + far] + slack || b.cumulative[i] > a.cumulative[i + far] + slack)
          fail_test(count, " shares, observer ", o, ": bin ", i, " of ", bins);
      const double one = whole.observers[o]->quantizer()->scale(), other = sum.observers[o]->quantizer()->scale();
      if (std::fabs(other / one - 1) > 0.01) fail_test(count, " shares: scale ", other, ", of one ", one);
    }
  }
}

void threads_do_not_matter(void **) {
  for (const char *observer : {"minmax", "moving_average", "mse", "histogram", "percentile", "nvidia_entropy"}) {
    set_default_threads(1);
    const auto one = state(calibrated(observer, 0, 4));
    for (const int threads : {2, 3, 8}) {
      set_default_threads(threads);
      assert_true(state(calibrated(observer, 0, 4)) == one);
    }
    set_default_threads(0);
  }
}

void refused_and_unchanged(void **) {
  PreparedModel p = calibrated("minmax", 0, 3);
  const auto before = state(p);
  Calibration other = calibration_of(calibrated("minmax", 3, 5));
  other.source = "other.qcal";
  const auto refuse = [&](const char *message) {
    expect_error(QTN_EINVAL, message, [&] { add(p, other); });
    assert_true(state(p) == before);
    assert_int_equal(p.samples, 3);
  };
  other.model ^= 1;
  refuse("calibration: other.qcal is of another model than the model");
  other.model ^= 1;
  other.config ^= 1;
  refuse("calibration: other.qcal is of config \"onnx\" with other settings than the model");
  other.config ^= 1;
  std::swap(other.entries[0].tensor, other.entries[1].tensor);
  refuse("calibration: observer 0 of other.qcal is of tensor \"v\", that of the model of \"x\"");
  std::swap(other.entries[0].tensor, other.entries[1].tensor);
  other.entries[1].observer = make_observer("minmax", attrs({{"dtype", "int8"}}));
  refuse("calibration: other.qcal, tensor \"v\": observer: cannot merge observers of different settings");
  other.entries.pop_back();
  other.entries[1].observer = p.observers[1]->clone();
  refuse("calibration: other.qcal has 3 observers, the model has 4");
}

void fingerprints_tell_models_apart(void **) {
  const graph::Graph g = network();
  const std::uint64_t plain = fingerprint(g);
  assert_true(fingerprint(network()) == plain);
  const auto changed = [&](auto change) {
    graph::Graph other = network();
    change(other);
    assert_true(fingerprint(other) != plain);
  };
  changed([](graph::Graph &h) { h.nodes[0].clamp = ops::Clamp{0, 6}; });
  changed([](graph::Graph &h) { h.nodes[0].attrs.set("group", std::int64_t{1}); });
  changed([](graph::Graph &h) { h.nodes[1].op = ops::find_op("Abs"); });
  changed([](graph::Graph &h) { std::swap(h.nodes[3].inputs[0], h.nodes[3].inputs[1]); });
  changed([](graph::Graph &h) { h.value(h.inputs[0]).name = "z"; });
  changed([](graph::Graph &h) { h.outputs.push_back(h.nodes[0].outputs[0]); });
  changed([](graph::Graph &h) {
    Tensor &weight = h.value(h.nodes[4].inputs[1]).constant;
    weight = weight.clone();
    weight.as<std::uint8_t>()[weight.nbytes() - 4] ^= 1;
  });
}

void fingerprints_tell_configs_apart(void **) {
  const auto of = [](const char *selector, std::initializer_list<std::pair<std::string, Attr>> settings) {
    Config config("onnx");
    Attrs a;
    for (const auto &[key, value] : settings) a.set(key, value);
    config.set(selector, settings.size() ? &a : nullptr);
    return fingerprint(prepare(network(), config).placement);
  };
  const std::uint64_t plain = fingerprint(prepare(network(), Config("onnx")).placement);
  assert_true(of("name:nothing", {{"observer", "mse"}}) == plain);
  assert_true(of("*", {{"observer", "minmax"}}) == plain);
  assert_true(of("node:b", {{"observer", "mse"}}) != plain);
  assert_true(of("node:b", {{"weight_observer", "mse"}, {"weight_scheme", "per_tensor_symmetric"}}) != plain);
  assert_true(of("node:b", {{"weight_narrow_range", std::int64_t{0}}}) != plain);
  assert_true(of("node:b", {{"eps", 1e-3}}) != plain);
  assert_true(of("node:b", {{"replace_relu6", std::int64_t{1}}}) != plain);
  assert_true(of("node:b", {{"bias", "float32"}}) != plain);
  assert_true(of("tensor:v", {{"observer", "mse"}}) != plain);
  assert_true(of("node:b", {}) != plain);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(shares_add_up_exactly),
      cmocka_unit_test(onlookers_see_what_they_would_alone),
      cmocka_unit_test(onlookers_that_refuse_see_no_more),
      cmocka_unit_test(histograms_add_up_nearly),
      cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(refused_and_unchanged),
      cmocka_unit_test(fingerprints_tell_models_apart),
      cmocka_unit_test(fingerprints_tell_configs_apart),
  };
  return cmocka_run_group_tests_name("calibration", tests, nullptr, nullptr);
}
