// SPDX-License-Identifier: Apache-2.0
// Observers against PyTorch's, merging, saving, and bytes that nobody saved.
#include <cmath>
#include <random>

#include "quant/observer.hpp"
#include "support.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

const char *const kKinds[] = {"minmax", "moving_average", "mse", "histogram"};

Tensor random_tensor(unsigned seed, const Shape &shape, float mean = 0, float deviation = 1) {
  std::mt19937 engine(seed);
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) {
    // Sum of uniforms rather than std::normal_distribution, whose values are not the same everywhere.
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>(engine()) / 4294967296.0f - 0.5f;
    t.as<float>()[i] = mean + deviation * sum;
  }
  return t;
}

/// torch ignores infinities in histograms; here they are errors, so the finite values are shown.
Tensor finite_part(const Tensor &x) {
  std::vector<float> kept;
  for (const float v : float_values(x, "x"))
    if (std::isfinite(v)) kept.push_back(v);
  return kept.size() == static_cast<std::size_t>(x.count()) ? x
                                                            : floats({static_cast<std::int64_t>(kept.size())}, kept);
}

std::unique_ptr<Observer> from_case(const nlohmann::json &c, const std::string &kind) {
  const auto &options = c.at("options");
  Attrs a;
  const bool per_channel = options.contains("ch_axis");
  a.set("dtype", c.at("dtype").get<std::string>());
  a.set("scheme", (per_channel ? "per_channel_" : "per_tensor_") + c.at("scheme").get<std::string>());
  a.set("reduce_range", std::int64_t{options.at("reduce_range").get<bool>()});
  a.set("eps", options.at("eps").get<double>());
  if (per_channel) a.set("axis", options.at("ch_axis").get<std::int64_t>());
  if (options.contains("averaging_constant"))
    a.set("averaging_constant", options.at("averaging_constant").get<double>());
  if (options.contains("bins")) a.set("bins", options.at("bins").get<std::int64_t>());
  return make_observer(kind, a);
}

void check_against(const nlohmann::json &c, const nlohmann::json &sequences, const std::string &kind) {
  const auto observer = from_case(c, kind);
  for (const auto &x : sequences.at(c.at("sequence").get<std::string>()))
    observer->observe(finite_part(float_tensor(x)));
  const std::string name = c.at("name").get<std::string>();
  if (observer->empty()) {
    expect_error(QTN_ESTATE, "no data", [&] { observer->quantizer(); });
    return;
  }
  const QuantizerPtr q = observer->quantizer();
  const std::vector<double> scales = numbers(c.at("scale")), zeros = numbers(c.at("zero_point"));
  if (q->count() != scales.size()) fail_test(name, ": ", q->count(), " scales");
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const auto want = static_cast<float>(scales[i]), got = static_cast<float>(q->scales()[i]);
    if (got != want || static_cast<double>(q->zero_points()[i]) != zeros[i])
      fail_test(name, ": channel ", i, " has scale ", nlohmann::json(got).dump(), " zero point ", q->zero_points()[i],
                ", not ", nlohmann::json(want).dump(), " and ", zeros[i]);
  }
}

void ranges_equal_torch(void **) {
  const auto file = golden("observers.json");
  std::size_t checked = 0;
  for (const auto &c : file.at("cases")) {
    // Custom integer ranges and float zero points are not offered.
    if (c.at("options").contains("quant_min") || c.at("scheme") == "affine_float_qparams") continue;
    const bool moving = c.at("observer").get<std::string>().starts_with("Moving");
    check_against(c, file.at("sequences"), moving ? "moving_average" : "minmax");
    ++checked;
  }
  assert_true(checked > 150);
}

void histograms_equal_torch(void **) {
  const auto file = golden("histogram.json");
  for (const auto &c : file.at("cases")) check_against(c, file.at("sequences"), "histogram");
  assert_true(file.at("cases").size() > 100);
}

void documented_vectors(void **) {
  const Tensor x = floats({7}, {1, 2, 2, 3, 4, 5, 6}), y = floats({6}, {4, 5, 5, 6, 7, 8});
  const auto observer = make_observer("minmax", {});
  observer->observe(x);
  observer->observe(y);
  assert_float_equal(observer->quantizer()->scale(), 0.0313725f, 1e-7f);
  assert_int_equal(observer->quantizer()->zero_point(), 0);

  const Tensor weight = floats({4}, {1, -1, .5f, -.5f});
  const auto symmetric = make_observer("minmax", attrs({{"dtype", "int8"}, {"scheme", "per_tensor_symmetric"}}));
  symmetric->observe(weight);
  assert_true(symmetric->quantizer()->scales()[0] == 0.007843137718737125);
  assert_int_equal(symmetric->quantizer()->quantize(1.0f), 127);
  assert_int_equal(symmetric->quantizer()->quantize(-1.0f), -127);
}

void onnx_numerics(void **) {
  const auto observer = make_observer("minmax", attrs({{"dtype", "int8"},
                                                       {"scheme", "per_channel_symmetric"},
                                                       {"narrow_range", std::int64_t{1}},
                                                       {"numerics", "onnx"}}));
  observer->observe(floats({3, 2}, {1, -2, 0, 0, 0.5f, 0.25f}));
  const QuantizerPtr q = observer->quantizer();
  assert_true(q->scales()[0] == static_cast<double>(static_cast<float>(4.0 / 254)));
  assert_true(q->scales()[1] == 1.0);
  assert_true(q->scales()[2] == static_cast<double>(static_cast<float>(1.0 / 254)));
}

void merging_equals_one_stream(void **) {
  const Attrs per_channel = attrs({{"dtype", "int8"}, {"scheme", "per_channel_symmetric"}, {"axis", std::int64_t{1}}});
  struct Case {
    const char *kind;
    Attrs attrs;
  };
  for (const Case &c : {Case{"minmax", {}}, Case{"minmax", per_channel},
                        Case{"mse", attrs({{"bins", std::int64_t{64}}})}, Case{"mse", {}}}) {
    const auto all = make_observer(c.kind, c.attrs), a = make_observer(c.kind, c.attrs),
               b = make_observer(c.kind, c.attrs);
    const auto none = make_observer(c.kind, c.attrs);
    for (unsigned i = 0; i < 6; ++i) {
      const Tensor x =
          random_tensor(i, {5, 3, 7}, 0.1f * static_cast<float>(i), std::ldexp(1.0f, static_cast<int>(i * 3 % 7)));
      all->observe(x);
      (i % 2 ? a : b)->observe(x);
    }
    a->merge(*b);
    a->merge(*none);
    none->merge(*a);
    assert_true(a->save() == all->save());
    assert_true(none->save() == all->save());
    assert_true(*a->quantizer() == *all->quantizer());
  }
}

void merging_averages_by_batches(void **) {
  const auto a = make_observer("moving_average", {}), b = make_observer("moving_average", {});
  a->observe(floats({2}, {0, 1}));
  for (int i = 0; i < 3; ++i) b->observe(floats({2}, {0, 5}));
  a->merge(*b);
  assert_float_equal(a->quantizer()->scale(), 4.0f / 255, 1e-8f);
}

void merging_histograms(void **) {
  const auto all = make_observer("histogram", {}), a = make_observer("histogram", {}),
             b = make_observer("histogram", {});
  const Tensor x = random_tensor(1, {4000}), y = random_tensor(2, {4000}, 0.2f, 1.5f);
  all->observe(x);
  all->observe(y);
  a->observe(x);
  b->observe(y);
  a->merge(*b);
  assert_float_equal(a->quantizer()->scale(), all->quantizer()->scale(), 1e-4f);
}

void merging_needs_equals(void **) {
  const auto a = make_observer("minmax", {});
  expect_error(QTN_EINVAL, "\"mse\"", [&] { a->merge(*make_observer("mse", {})); });
  expect_error(QTN_EINVAL, "settings", [&] { a->merge(*make_observer("minmax", attrs({{"dtype", "int8"}}))); });
}

double squared_error(const Quantizer &q, const Tensor &x) {
  double sum = 0;
  for (const float v : float_values(x, "x")) {
    const double e = static_cast<double>(q.dequantize(q.quantize(v)) - v);
    sum += e * e;
  }
  return sum;
}

void mse_beats_minmax(void **) {
  for (const char *scheme : {"per_tensor_affine", "per_tensor_symmetric"}) {
    const Attrs a = attrs({{"dtype", "int8"}, {"scheme", scheme}});
    const auto mse = make_observer("mse", a), minmax = make_observer("minmax", a);
    Tensor x = random_tensor(3, {1500000});
    x.as<float>()[17] = 25.0f;
    mse->observe(x);
    minmax->observe(x);
    assert_true(squared_error(*mse->quantizer(), x) < 0.5 * squared_error(*minmax->quantizer(), x));
  }
  // Where every value counts, nothing is clipped.
  const auto even = make_observer("mse", {}), minmax = make_observer("minmax", {});
  const Tensor two = floats({4}, {0, 0, 1, 1});
  even->observe(two);
  minmax->observe(two);
  assert_true(squared_error(*even->quantizer(), two) <= squared_error(*minmax->quantizer(), two) + 1e-12);
}

void extremes(void **) {
  for (const char *kind : kKinds) {
    for (const float v : {0.0f, 1e-45f, -1e-40f, 1e30f, -1e30f}) {
      const auto observer = make_observer(kind, {});
      observer->observe(floats({3}, {v, v, v}));
      assert_true(observer->quantizer()->scale() > 0);
    }
    const auto wide = make_observer(kind, {});
    wide->observe(floats({3}, {-1e30f, 1e-45f, 1e30f}));
    assert_true(wide->quantizer()->scale() > 0);
  }
  expect_error(QTN_EINVAL, "too wide", [] { make_observer("histogram", {})->observe(floats({2}, {-3e38f, 3e38f})); });
}

void bad_data_changes_nothing(void **) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const char *kind : kKinds) {
    const auto observer = make_observer(kind, {});
    expect_error(QTN_ESTATE, "no data", [&] { observer->quantizer(); });
    observer->observe(floats({0, 3}, {}));
    assert_true(observer->empty());
    observer->observe(floats({2}, {-1, 2}));
    const auto before = observer->save();
    expect_error(QTN_EINVAL, "nan at index 2", [&] { observer->observe(floats({4}, {9, 9, nan, 9})); });
    expect_error(QTN_EINVAL, "-inf at index 1", [&] { observer->observe(floats({2, 1}, {9, -infinity})); });
    expect_error(QTN_EDTYPE, "int64", [&] { observer->observe(Tensor::from_ints(std::vector<std::int64_t>{1})); });
    observer->observe(floats({0}, {}));
    assert_true(observer->save() == before);
  }
  const auto channels = make_observer(
      "minmax", attrs({{"dtype", "int8"}, {"scheme", "per_channel_symmetric"}, {"axis", std::int64_t{1}}}));
  channels->observe(floats({1, 2}, {1, 2}));
  const auto before = channels->save();
  expect_error(QTN_ESHAPE, "3 channels", [&] { channels->observe(floats({1, 3}, {1, 2, 3})); });
  expect_error(QTN_ESHAPE, "axis 1", [&] { channels->observe(floats({3}, {1, 2, 3})); });
  assert_true(channels->save() == before);
}

void any_strides(void **) {
  const Tensor x = random_tensor(5, {4, 6});
  const std::int32_t axes[] = {1, 0};
  const Attrs a = attrs({{"scheme", "per_channel_affine"}});
  const auto direct = make_observer("minmax", a), view = make_observer("minmax", a);
  direct->observe(x.permute(axes).clone());
  view->observe(x.permute(axes));
  assert_true(direct->save() == view->save());
}

void bad_settings(void **) {
  expect_error(QTN_EINVAL, "minmax moving_average mse histogram", [] { make_observer("max", {}); });
  expect_error(QTN_EINVAL, "averaging_constant", [] { make_observer("minmax", attrs({{"colour", "red"}})); });
  expect_error(QTN_EINVAL, "int32", [] { make_observer("minmax", attrs({{"dtype", "float32"}})); });
  for (const char *scheme : {"affine", "per_block_affine"})
    expect_error(QTN_EINVAL, "per_channel_symmetric", [&] { make_observer("minmax", attrs({{"scheme", scheme}})); });
  expect_error(QTN_EINVAL, "axis -1", [] { make_observer("minmax", attrs({{"axis", std::int64_t{-1}}})); });
  expect_error(QTN_EINVAL, "averaging_constant 2", [] {
    make_observer("minmax", attrs({{"averaging_constant", 2.0}}));
  });
  expect_error(QTN_EINVAL, "bins 1 ", [] { make_observer("mse", attrs({{"bins", std::int64_t{1}}})); });
  expect_error(QTN_EINVAL, "eps", [] { make_observer("mse", attrs({{"eps", 0.0}})); });
  expect_error(QTN_EUNSUPPORTED, "per tensor, not per_channel_affine; per channel there are: minmax moving_average",
               [] {
                 make_observer("mse", attrs({{"scheme", "per_channel_affine"}}));
               });
  expect_error(QTN_EUNSUPPORTED, "reduce_range", [] {
    make_observer("minmax", attrs({{"scheme", "per_tensor_symmetric"}, {"reduce_range", std::int64_t{1}}}));
  });
}

std::vector<std::vector<std::byte>> saved_observers() {
  std::vector<std::vector<std::byte>> saved;
  for (const char *kind : kKinds) {
    const auto observer = make_observer(kind, attrs({{"bins", std::int64_t{16}}}));
    saved.push_back(observer->save());
    observer->observe(random_tensor(7, {50}));
    observer->observe(random_tensor(8, {50}, 1, 3));
    saved.push_back(observer->save());
  }
  return saved;
}

void saving_round_trips(void **) {
  for (const auto &bytes : saved_observers()) {
    const auto loaded = load_observer(bytes);
    assert_true(loaded->save() == bytes);
    const auto copy = loaded->clone();
    for (Observer *o : {loaded.get(), copy.get()}) o->observe(random_tensor(9, {20}));
    assert_true(loaded->save() == copy->save());
    assert_true(*loaded->quantizer() == *copy->quantizer());
  }
}

/// Loads what may be nonsense. It must fail cleanly or give an observer that works.
void load_hostile(const std::vector<std::byte> &bytes) {
  std::unique_ptr<Observer> observer;
  try {
    observer = load_observer(bytes);
  } catch (const Error &e) {
    assert_int_equal(e.status(), QTN_EFORMAT);
    return;
  }
  try {
    observer->observe(random_tensor(10, {4, 4}));
    observer->merge(*observer->clone());
    observer->quantizer();
  } catch (const Error &) {
    // Such as a channel count that the tensor does not have.
  }
}

void hostile_bytes(void **) {
  std::mt19937 engine(11);
  for (const auto &bytes : saved_observers()) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
      expect_error(QTN_EFORMAT, "observer", [&] { load_observer(std::span(bytes).first(size)); });
    auto longer = bytes;
    longer.push_back(std::byte{0});
    expect_error(QTN_EFORMAT, "after its end", [&] { load_observer(longer); });
    for (int round = 0; round < 3000; ++round) {
      auto broken = bytes;
      for (unsigned k = 0; k <= engine() % 3; ++k) broken[engine() % broken.size()] = static_cast<std::byte>(engine());
      load_hostile(broken);
    }
  }
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> noise(engine() % 200);
    for (std::byte &b : noise) b = static_cast<std::byte>(engine());
    expect_error(QTN_EFORMAT, "observer", [&] { load_observer(noise); });
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(ranges_equal_torch),
      cmocka_unit_test(histograms_equal_torch),
      cmocka_unit_test(documented_vectors),
      cmocka_unit_test(onnx_numerics),
      cmocka_unit_test(merging_equals_one_stream),
      cmocka_unit_test(merging_averages_by_batches),
      cmocka_unit_test(merging_histograms),
      cmocka_unit_test(merging_needs_equals),
      cmocka_unit_test(mse_beats_minmax),
      cmocka_unit_test(extremes),
      cmocka_unit_test(bad_data_changes_nothing),
      cmocka_unit_test(any_strides),
      cmocka_unit_test(bad_settings),
      cmocka_unit_test(saving_round_trips),
      cmocka_unit_test(hostile_bytes),
  };
  return cmocka_run_group_tests_name("observers", tests, nullptr, nullptr);
}
