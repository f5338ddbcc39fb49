// SPDX-License-Identifier: Apache-2.0
// Observers against those of PyTorch, ONNX Runtime and NVIDIA; their settings; bytes that nobody saved.
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "observed.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

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
  for (const char *key : {"quant_min", "quant_max"})
    if (options.contains(key)) a.set(key, options.at(key).get<std::int64_t>());
  if (options.contains("bins")) a.set("bins", options.at("bins").get<std::int64_t>());
  return make_observer(kind, a);
}

void check_grid(const nlohmann::json &c, const Quantizer &q) {
  const std::string name = c.at("name").get<std::string>();
  const std::vector<double> scales = numbers(c.at("scale")), zeros = numbers(c.at("zero_point"));
  if (q.count() != scales.size()) fail_test(name, ": ", q.count(), " scales");
  const bool in_float = c.at("scale").at("dtype") == "float32";
  const auto stored = [&](double scale) { return in_float ? static_cast<double>(static_cast<float>(scale)) : scale; };
  const auto zero_of = [&](std::size_t i) {
    return q.zeros_are_floats() ? q.float_zero_points()[i] : static_cast<double>(q.zero_points()[i]);
  };
  if (q.zeros_are_floats() != (c.value("scheme", "") == "affine_float_qparams"))
    fail_test(name, ": zero points of another kind");
  for (std::size_t i = 0; i < scales.size(); ++i)
    if (stored(q.scales()[i]) != stored(scales[i]) || stored(zero_of(i)) != stored(zeros[i]))
      fail_test(name, ": channel ", i, " has scale ", nlohmann::json(q.scales()[i]).dump(), " zero point ", zero_of(i),
                ", not ", nlohmann::json(scales[i]).dump(), " and ", zeros[i]);
}

void check_against(const nlohmann::json &c, const nlohmann::json &sequences, const std::string &kind) {
  const auto observer = from_case(c, kind);
  for (const auto &x : sequences.at(c.at("sequence").get<std::string>()))
    observer->observe(finite_part(float_tensor(x)));
  if (observer->empty()) {
    expect_error(QTN_ESTATE, "no data", [&] { observer->quantizer(); });
    return;
  }
  check_grid(c, *observer->quantizer());
}

void ranges_equal_torch(void **) {
  const auto file = golden("quant/observers.json");
  std::size_t checked = 0;
  for (const auto &c : file.at("cases")) {
    const bool moving = c.at("observer").get<std::string>().starts_with("Moving");
    check_against(c, file.at("sequences"), moving ? "moving_average" : "minmax");
    ++checked;
  }
  assert_true(checked > 150);
}

void histograms_equal_torch(void **) {
  const auto file = golden("quant/histogram.json");
  for (const auto &c : file.at("cases")) check_against(c, file.at("sequences"), "histogram");
  assert_true(file.at("cases").size() > 100);
}

Attrs attrs_of(const nlohmann::json &object) {
  Attrs a;
  for (const auto &[key, value] : object.items()) {
    if (value.is_string())
      a.set(key, value.get<std::string>());
    else if (value.is_number_integer())
      a.set(key, value.get<std::int64_t>());
    else
      a.set(key, value.get<double>());
  }
  return a;
}

void calibrators_equal_their_sources(void **) {
  const auto file = golden("quant/calibrators.json");
  std::map<std::string, int> checked;
  for (const auto &c : file.at("cases")) {
    const auto observer = make_observer(c.at("observer").get<std::string>(), attrs_of(c.at("attrs")));
    for (const auto &x : file.at("sequences").at(c.at("sequence").get<std::string>()))
      observer->observe(float_tensor(x));
    check_grid(c, *observer->quantizer());
    ++checked[c.at("observer").get<std::string>()];
  }
  for (const char *kind :
       {"fixed", "max", "percentile", "entropy", "nvidia_percentile", "nvidia_entropy", "nvidia_mse"})
    assert_true(checked[kind] >= 3);
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

void channels_are_ranges_of_slices(void **) {
  for (const Shape &shape : {Shape{5, 1500, 3}, Shape{2, 70, 65}, Shape{1, 3, 1}, Shape{2100, 2}})
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const Tensor x = random_tensor(static_cast<unsigned>(axis) + 8, shape);
      const auto channels = make_observer(
          "minmax",
          attrs({{"dtype", "uint8"}, {"scheme", "per_channel_affine"}, {"axis", static_cast<std::int64_t>(axis)}}));
      channels->observe(x);
      const QuantizerPtr q = channels->quantizer();
      assert_int_equal(q->count(), shape[axis]);
      for (std::size_t c = 0; c < q->count(); ++c) {
        const auto one = make_observer("minmax", attrs({{"dtype", "uint8"}, {"scheme", "per_tensor_affine"}}));
        one->observe(x.select(axis, static_cast<std::int64_t>(c)));
        assert_true(q->scales()[c] == one->quantizer()->scales()[0]);
        assert_int_equal(q->zero_points()[c], one->quantizer()->zero_points()[0]);
      }
    }
}

void blocks_are_ranges_of_slices(void **) {
  const Tensor x = random_tensor(3, {3, 7, 2});
  for (const char *kind : {"minmax", "max", "moving_average"}) {
    const auto blocks = make_observer(kind, attrs({{"dtype", "int4"},
                                                   {"scheme", "per_block_symmetric"},
                                                   {"axis", std::int64_t{1}},
                                                   {"block_size", std::int64_t{3}}}));
    blocks->observe(x);
    const QuantizerPtr q = blocks->quantizer();
    assert_int_equal(q->count(), 3 * 3 * 2);
    for (std::int64_t o = 0; o < 3; ++o)
      for (std::int64_t b = 0; b < 3; ++b)
        for (std::int64_t i = 0; i < 2; ++i) {
          const auto one = make_observer(kind, attrs({{"dtype", "int4"}, {"scheme", "per_tensor_symmetric"}}));
          one->observe(x.select(0, o).slice(0, b * 3, std::min<std::int64_t>(b * 3 + 3, 7), 1).select(1, i));
          assert_true(q->scales()[static_cast<std::size_t>((o * 3 + b) * 2 + i)] == one->quantizer()->scales()[0]);
        }
    expect_error(QTN_ESHAPE, "channels or blocks", [&] { blocks->observe(random_tensor(4, {3, 10, 2})); });
  }
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

/// A search knows that only 16 integers are left.
void searches_respect_given_integers(void **) {
  Tensor x = random_tensor(6, {20000});
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = std::fabs(x.as<float>()[i]);
  for (const char *kind : {"mse", "nvidia_mse", "nvidia_entropy"}) {
    const char *numerics = kind[0] == 'm' ? "onnx" : "nvidia";
    const auto four =
        make_observer(kind, attrs({{"dtype", "uint4"}, {"scheme", "per_tensor_symmetric"}, {"numerics", numerics}}));
    const auto same = make_observer(kind, attrs({{"dtype", "uint8"},
                                                 {"scheme", "per_tensor_symmetric"},
                                                 {"numerics", numerics},
                                                 {"quant_min", std::int64_t{0}},
                                                 {"quant_max", std::int64_t{15}}}));
    four->observe(x);
    same->observe(x);
    assert_true(four->quantizer()->scales() == same->quantizer()->scales());
  }
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
  expect_error(QTN_EINVAL, "minmax max moving_average", [] { make_observer("maximum", {}); });
  expect_error(QTN_EINVAL, "averaging_constant", [] { make_observer("minmax", attrs({{"colour", "red"}})); });
  expect_error(QTN_EINVAL, "int32", [] { make_observer("minmax", attrs({{"dtype", "float32"}})); });
  expect_error(QTN_EINVAL, "per_block_affine per_block_symmetric", [] {
    make_observer("minmax", attrs({{"scheme", "affine"}}));
  });
  expect_error(QTN_EINVAL, "block size 0", [] { make_observer("minmax", attrs({{"scheme", "per_block_affine"}})); });
  expect_error(QTN_EINVAL, "range [0, 256]", [] {
    make_observer("minmax", attrs({{"quant_min", std::int64_t{0}}, {"quant_max", std::int64_t{256}}}));
  });
  expect_error(QTN_EINVAL, "is not inside uint8", [] {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    make_observer("minmax", attrs({{"quant_min", kLeast}, {"quant_max", kLeast}}));
  });
  expect_error(QTN_EINVAL, "axis -1", [] { make_observer("minmax", attrs({{"axis", std::int64_t{-1}}})); });
  expect_error(QTN_EINVAL, "averaging_constant 2", [] {
    make_observer("minmax", attrs({{"averaging_constant", 2.0}}));
  });
  expect_error(QTN_EINVAL, "percentile 100.5", [] { make_observer("minmax", attrs({{"percentile", 100.5}})); });
  expect_error(QTN_EINVAL, "needs scale", [] { make_observer("fixed", {}); });
  expect_error(QTN_EINVAL, "not: zero_point", [] { make_observer("fixed", attrs({{"zero_point", std::int64_t{3}}})); });
  expect_error(QTN_EINVAL, "\"minmax\" is given: scale min", [] {
    make_observer("minmax", attrs({{"scale", 1.0}, {"min", -1.0}}));
  });
  expect_error(QTN_EINVAL, "scale -1", [] {
    make_observer("fixed", attrs({{"scale", -1.0}, {"zero_point", std::int64_t{3}}}));
  });
  expect_error(QTN_EINVAL, "zero_point 300", [] {
    make_observer("fixed", attrs({{"scale", 1.0}, {"zero_point", std::int64_t{300}}}));
  });
  expect_error(QTN_EINVAL, "bins 129 of \"entropy\" is odd", [] {
    make_observer("entropy", attrs({{"bins", std::int64_t{129}}}));
  });
  for (const char *kind : {"entropy", "nvidia_entropy", "nvidia_mse"})
    expect_error(QTN_EINVAL, "bins 126", [&] { make_observer(kind, attrs({{"bins", std::int64_t{126}}})); });
  expect_error(QTN_EINVAL, "bins 1 ", [] { make_observer("mse", attrs({{"bins", std::int64_t{1}}})); });
  // Searches that take time with the square of the bins, which a file may ask for.
  const std::pair<const char *, int> kMostBins[] = {
      {"mse", 65536}, {"histogram", 16384}, {"entropy", 2048}, {"nvidia_mse", 4096}, {"nvidia_entropy", 4096}};
  for (const auto &kind : kMostBins) {
    const auto bins = [](std::int64_t count) { return attrs({{"bins", count}}); };
    make_observer(kind.first, bins(kind.second));
    expect_error(QTN_EINVAL,
                 cat("bins ", kind.second + 2, " of \"", kind.first, "\" is outside [2, ", kind.second, "]"),
                 [&] { make_observer(kind.first, bins(kind.second + 2)); });
  }
  expect_error(QTN_EINVAL, "eps", [] { make_observer("mse", attrs({{"eps", 0.0}})); });
  expect_error(QTN_EUNSUPPORTED, "per tensor, not per_channel_affine; other schemes have: minmax max moving_average",
               [] {
                 make_observer("mse", attrs({{"scheme", "per_channel_affine"}}));
               });
  expect_error(QTN_EUNSUPPORTED, "reduce_range", [] {
    make_observer("minmax", attrs({{"scheme", "per_tensor_symmetric"}, {"reduce_range", std::int64_t{1}}}));
  });
}

std::vector<std::vector<std::byte>> saved_observers() {
  std::vector<std::vector<std::byte>> saved;
  for (const std::string_view kind : observer_kinds()) {
    const bool searches_from_128 = kind == "entropy" || kind == "nvidia_entropy" || kind == "nvidia_mse";
    const auto observer = make_kind(kind, {{"bins", std::int64_t{searches_from_128 ? 130 : 16}}});
    saved.push_back(observer->save());
    observer->observe(random_tensor(7, {50}));
    observer->observe(random_tensor(8, {50}, 1, 3));
    saved.push_back(observer->save());
  }
  for (const Attrs &more : {attrs({{"numerics", "nvidia"}, {"scheme", "per_tensor_symmetric"}, {"scale_amax", 0.5}}),
                            attrs({{"scheme", "per_channel_affine_float_qparams"}})}) {
    const auto observer = make_observer("minmax", more);
    observer->observe(random_tensor(9, {4, 4}, 1, 3));
    saved.push_back(observer->save());
  }
  return saved;
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
    // A search through the thousands of bins that a broken count may ask for takes seconds.
    if (observer->save().size() < 4000) observer->quantizer();
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
    for (int round = 0; round < 1000; ++round) {
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
      cmocka_unit_test(calibrators_equal_their_sources),
      cmocka_unit_test(documented_vectors),
      cmocka_unit_test(onnx_numerics),
      cmocka_unit_test(channels_are_ranges_of_slices),
      cmocka_unit_test(blocks_are_ranges_of_slices),
      cmocka_unit_test(mse_beats_minmax),
      cmocka_unit_test(searches_respect_given_integers),
      cmocka_unit_test(any_strides),
      cmocka_unit_test(bad_settings),
      cmocka_unit_test(hostile_bytes),
  };
  return cmocka_run_group_tests_name("observers", tests, nullptr, nullptr);
}
