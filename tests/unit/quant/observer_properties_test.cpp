// SPDX-License-Identifier: Apache-2.0
// What holds for every kind of observer: splitting and merging, saving, memory, bad and extreme data.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "observed.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

using Maker = std::function<std::unique_ptr<Observer>()>;
using Batches = std::vector<Tensor>;

/// What a kind promises of data that reaches it in parts; docs/quantization.md says so too.
enum class Parts {
  exact,       ///< the same observer
  within_bin,  ///< ends of the range within a bin, after a merge within two
  by_range,    ///< the same quantizer if all parts have one range
};

Parts promise_of(std::string_view kind) {
  static const std::map<std::string_view, Parts> promises = {
      {"minmax", Parts::exact},
      {"max", Parts::exact},
      {"mse", Parts::exact},
      {"fixed", Parts::exact},
      {"percentile", Parts::within_bin},
      {"nvidia_percentile", Parts::within_bin},
      {"histogram", Parts::by_range},
      {"moving_average", Parts::by_range},
      {"entropy", Parts::by_range},
      {"nvidia_entropy", Parts::by_range},
      {"nvidia_mse", Parts::by_range},
  };
  const auto found = promises.find(kind);
  if (found == promises.end()) fail_test("no promise is known of \"", kind, "\"");
  return found->second;
}

/// Every kind under the settings that make a difference to it.
void for_every_kind(const std::function<void(std::string_view kind, const Maker &)> &f) {
  for (const std::string_view kind : observer_kinds()) {
    f(kind, [&] { return make_kind(kind); });
    f(kind, [&] {
      return make_kind(kind, {{"dtype", "int8"}, {"scheme", "per_tensor_symmetric"}, {"numerics", "nvidia"}});
    });
    f(kind, [&] { return make_kind(kind, {{"bins", std::int64_t{130}}, {"numerics", "onnx"}, {"percentile", 99.0}}); });
  }
  f("percentile", [] { return make_kind("percentile", {{"absolute", std::int64_t{0}}}); });
  for (const char *kind : {"minmax", "max", "moving_average"}) {
    f(kind, [&] {
      return make_kind(kind, {{"dtype", "int8"}, {"scheme", "per_channel_symmetric"}, {"axis", std::int64_t{1}}});
    });
    f(kind, [&] {
      return make_kind(kind, {{"dtype", "uint8"}, {"quant_min", std::int64_t{3}}, {"quant_max", std::int64_t{17}}});
    });
    f(kind, [&] {
      return make_kind(kind,
                       {{"descriptor", "QUANT_DESC_8BIT_CONVTRANSPOSE2D_WEIGHT_PER_CHANNEL"}, {"scale_amax", 0.75}});
    });
    f(kind, [&] {
      return make_kind(kind, {{"scheme", "per_channel_affine_float_qparams"}, {"axis", std::int64_t{1}}});
    });
  }
}

Tensor joined(const Batches &parts) {
  const std::int64_t channels = parts[0].dim(1);
  std::vector<float> values;
  for (const Tensor &part : parts)
    for (const float v : float_values(part, "part")) values.push_back(v);
  return floats({static_cast<std::int64_t>(values.size()) / channels, channels}, values);
}

/// Rows of 4 channels; in each channel of each part the smallest value is -t, the largest t, and there is a 0.
Batches parts_of_one_range(float t) {
  Batches parts;
  for (unsigned i = 0; i < 6; ++i) {
    Tensor x = random_tensor(i, {20 + i, 4});
    for (std::int64_t k = 0; k < x.count(); ++k) x.as<float>()[k] = std::clamp(x.as<float>()[k], -t, t);
    for (std::int64_t c = 0; c < 4; ++c) {
      x.as<float>()[c] = -t;
      x.as<float>()[4 + c] = t;
      x.as<float>()[8 + c] = 0;
    }
    parts.push_back(x);
  }
  return parts;
}

Batches parts_that_grow() {
  Batches parts;
  for (unsigned i = 0; i < 6; ++i) {
    Tensor x =
        random_tensor(10 + i, {300 + 7 * i, 4}, 0.05f * static_cast<float>(i), static_cast<float>(std::pow(1.7, i)));
    x.as<float>()[0] = 0;
    parts.push_back(x);
  }
  return parts;
}

std::unique_ptr<Observer> seen(const Maker &make, std::span<const Tensor> parts) {
  std::unique_ptr<Observer> observer = make();
  for (const Tensor &part : parts) observer->observe(part);
  return observer;
}

/// The same data: in one tensor, in two, and merged from observers that saw one part, or half of them, each.
std::vector<std::unique_ptr<Observer>> other_ways(const Maker &make, const Batches &parts) {
  std::vector<std::unique_ptr<Observer>> ways;
  ways.push_back(seen(make, Batches{joined(parts)}));
  ways.push_back(
      seen(make, Batches{joined({parts.begin(), parts.begin() + 3}), joined({parts.begin() + 3, parts.end()})}));
  for (const std::size_t size : {1u, 3u}) {
    std::unique_ptr<Observer> merged = make();
    for (std::size_t at = 0; at < parts.size(); at += size) {
      const std::unique_ptr<Observer> one = seen(make, std::span(parts).subspan(at, size));
      merged->merge(*one);
      merged->merge(*make());
    }
    ways.push_back(std::move(merged));
  }
  return ways;
}

void parts_of_one_range_are_as_one(void **) {
  for (const float t : {0.7f, 6.0f, 1000.0f})
    for_every_kind([&](std::string_view kind, const auto &make) {
      const Batches parts = parts_of_one_range(t);
      const auto whole = seen(make, parts);
      for (const auto &other : other_ways(make, parts))
        if (!(*other->quantizer() == *whole->quantizer()))
          fail_test(kind, ": scale ", other->quantizer()->scales()[0], " in parts, ", whole->quantizer()->scales()[0]);
    });
}

double width_of(const Quantizer &q) { return q.scales()[0] * static_cast<double>(q.range().hi - q.range().lo); }

void parts_that_grow_keep_their_promise(void **) {
  const Batches parts = parts_that_grow();
  const auto minmax = seen([] { return make_kind("minmax", {{"numerics", "onnx"}}); }, parts);
  const double range = width_of(*minmax->quantizer());
  for_every_kind([&](std::string_view kind, const auto &make) {
    const auto whole = seen(make, parts);
    const Parts promise = promise_of(kind);
    for (const auto &other : other_ways(make, parts)) {
      const double width = width_of(*other->quantizer()), apart = std::fabs(width - width_of(*whole->quantizer()));
      // Two ends, each within two bins; a bin is at most 2 * range / bins wide.
      const double bin = 2 * range / static_cast<double>(whole->settings().bins);
      if (promise == Parts::exact) assert_true(other->save() == whole->save());
      if (promise == Parts::within_bin && apart > 4 * bin) fail_test(kind, ": ranges ", apart, " apart, bins ", bin);
      assert_true(kind == "fixed" || (width > 0 && width <= 2.1 * range));
    }
  });
}

void merging_averages_by_batches(void **) {
  const auto a = make_observer("moving_average", {}), b = make_observer("moving_average", {});
  a->observe(floats({2}, {0, 1}));
  for (int i = 0; i < 3; ++i) b->observe(floats({2}, {0, 5}));
  a->merge(*b);
  assert_float_equal(a->quantizer()->scale(), 4.0f / 255, 1e-8f);
}

/// Also where floats lie a last bit apart, or further than the largest of them.
void averages_are_ordered(void **) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> first(0.9f, 1.1f), second(-3, 3);
  for (int i = 0; i < 1000; ++i) {
    const auto close = make_kind("moving_average", {{"averaging_constant", 0.9}});
    const float x = first(engine);
    close->observe(floats({1, 2}, {x, std::nextafter(x, 2.0f)}));
    close->observe(floats({1, 1}, {second(engine)}));
    load_observer(close->save());
  }
  const auto far = make_kind("moving_average", {{"averaging_constant", 0.25}});
  far->observe(floats({1, 1}, {3e38f}));
  far->observe(floats({1, 1}, {-3e38f}));
  assert_float_equal(load_observer(far->save())->quantizer()->scale() / (1.5e38f / 255), 1, 1e-6f);
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

void saving_round_trips(void **) {
  for_every_kind([](std::string_view, const auto &make) {
    const auto nothing = make();
    assert_true(load_observer(nothing->save())->save() == nothing->save());
    const Batches parts = parts_that_grow();
    const auto observer = seen(make, std::span(parts).first(3));
    const auto loaded = load_observer(observer->save()), copy = observer->clone();
    for (Observer *o : {observer.get(), loaded.get(), copy.get()}) {
      o->observe(parts[3]);
      o->merge(*seen(make, std::span(parts).last(2)));
    }
    assert_true(loaded->save() == observer->save());
    assert_true(copy->save() == observer->save());
    assert_true(*loaded->quantizer() == *observer->quantizer());
  });
}

/// However far the range grows, and from however little.
void memory_is_bounded(void **) {
  for_every_kind([](std::string_view kind, const auto &make) {
    for (const float first : {0.0f, 1e-40f, 1e-20f, 1e-3f, 5000.0f}) {
      const auto observer = make();
      observer->observe(floats({1, 2}, {first, first}));
      float top = first;
      for (int i = 0; i < 40; ++i) {
        top = std::max(top * 3, 1e-4f);
        observer->observe(floats({2, 2}, {top, -0.9f * top, 0.1f * top, 0}));
      }
      const auto bins = static_cast<std::size_t>(observer->settings().bins);
      if (observer->save().size() > 300 + 12 * (8 * bins + 2)) fail_test(kind, ": ", observer->save().size(), " bytes");
      const double width = width_of(*observer->quantizer());
      assert_true(std::isfinite(width) && width > 0);
    }
  });
}

/// Where bins were joined because the range grew a million times, quantiles are still found to a bin.
void joined_bins_keep_quantiles(void **) {
  for (const char *kind : {"percentile", "nvidia_percentile"}) {
    for (const std::int64_t absolute : {1, 0}) {
      for (const double percentile : {100.0, 90.0, 50.0}) {
        const auto observer = make_kind(kind, {{"dtype", "int8"},
                                               {"scheme", "per_tensor_symmetric"},
                                               {"bins", std::int64_t{256}},
                                               {"percentile", percentile},
                                               {"absolute", absolute}});
        std::vector<float> all;
        for (unsigned i = 0; i < 14; ++i) {
          Tensor x = random_tensor(20 + i, {1000}, 0, 1e-4f * static_cast<float>(std::pow(2.8, i)));
          x.as<float>()[0] = 0;
          observer->observe(x);
          for (const float v : float_values(x, "x")) all.push_back(kind[0] == 'n' || absolute ? std::fabs(v) : v);
        }
        std::sort(all.begin(), all.end());
        const bool two_tails = kind[0] == 'p' && !absolute;
        const double share = two_tails ? 1 - (100 - percentile) / 200 : percentile / 100,
                     n = static_cast<double>(all.size());
        const auto at = [&](double s) {
          return static_cast<double>(all[static_cast<std::size_t>(std::max(std::ceil(s * n) - 1, 0.0))]);
        };
        const double want = two_tails ? std::max(at(share), -at(1 - share)) : at(share);
        const double got = observer->quantizer()->scales()[0] * 127.5;
        const double bin = static_cast<double>(std::max(all.back(), -all.front())) / 256;
        if (std::fabs(got - want) > bin) fail_test(kind, " ", percentile, ": ", got, ", not ", want, " to ", bin);
      }
    }
  }
}

qstatus status_of(const std::function<void()> &f) {
  try {
    f();
    return QTN_OK;
  } catch (const Error &e) {
    return e.status();
  }
}

void extremes_give_a_grid(void **) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> data = {
      {0},
      {0, 0, 0},
      {-0.0f},
      {1},
      {-3, -3},
      {1e-45f},
      {-1e-40f, 0},
      {1e-38f, -1e-38f},
      {1e30f},
      {-1e30f, 1e-45f, 1e30f},
      {8192.0f, 8192.0f},
      {1e8f, 1e8f, 100000008.0f},
  };
  for (const char *numerics : {"fbgemm", "qnnpack", "onnx", "tflite", "nvidia"}) {
    for (const std::string_view kind : observer_kinds()) {
      for (const char *scheme : {"per_tensor_affine", "per_tensor_symmetric"}) {
        if (numerics == std::string_view("nvidia") && scheme == std::string_view("per_tensor_affine")) continue;
        const auto make = [&] {
          return make_kind(kind, {{"dtype", "int8"}, {"scheme", scheme}, {"numerics", numerics}});
        };
        for (const std::vector<float> &values : data) {
          const Tensor x = floats({static_cast<std::int64_t>(values.size())}, values);
          const auto observer = make();
          observer->observe(x);
          observer->observe(x);
          assert_true(observer->quantizer()->scale() > 0);
        }
        // What does not fit float32 is refused at once, and then nothing changes, or when a grid is wanted.
        const auto observer = make();
        observer->observe(floats({2}, {-1, 1}));
        const auto before = observer->save();
        const qstatus observed = status_of([&] { observer->observe(floats({2}, {-kLargest, kLargest})); });
        assert_true(observed == QTN_EINVAL ? observer->save() == before : observed == QTN_OK);
        const qstatus chosen = status_of([&] { assert_true(observer->quantizer()->scale() > 0); });
        assert_true(chosen == QTN_OK || (chosen == QTN_EINVAL && observed == QTN_OK));
      }
    }
  }
}

void bad_data_changes_nothing(void **) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for_every_kind([&](std::string_view kind, const auto &make) {
    const auto observer = make();
    observer->observe(floats({0, 3}, {}));
    assert_true(observer->empty() == (kind != "fixed"));
    if (observer->empty()) expect_error(QTN_ESTATE, "no data", [&] { observer->quantizer(); });
    observer->observe(floats({1, 2}, {-1, 2}));
    const auto before = observer->save();
    expect_error(QTN_EINVAL, "nan at index 2", [&] { observer->observe(floats({4}, {9, 9, nan, 9})); });
    expect_error(QTN_EINVAL, "-inf at index 1", [&] { observer->observe(floats({2, 1}, {9, -infinity})); });
    expect_error(QTN_EDTYPE, "int64", [&] { observer->observe(Tensor::from_ints(std::vector<std::int64_t>{1})); });
    observer->observe(floats({0}, {}));
    assert_true(observer->save() == before);
  });
  const auto channels = make_observer(
      "minmax", attrs({{"dtype", "int8"}, {"scheme", "per_channel_symmetric"}, {"axis", std::int64_t{1}}}));
  channels->observe(floats({1, 2}, {1, 2}));
  const auto before = channels->save();
  expect_error(QTN_ESHAPE, "3 channels", [&] { channels->observe(floats({1, 3}, {1, 2, 3})); });
  expect_error(QTN_ESHAPE, "axis 1", [&] { channels->observe(floats({3}, {1, 2, 3})); });
  assert_true(channels->save() == before);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts_of_one_range_are_as_one),
      cmocka_unit_test(parts_that_grow_keep_their_promise),
      cmocka_unit_test(merging_averages_by_batches),
      cmocka_unit_test(averages_are_ordered),
      cmocka_unit_test(merging_histograms),
      cmocka_unit_test(merging_needs_equals),
      cmocka_unit_test(saving_round_trips),
      cmocka_unit_test(memory_is_bounded),
      cmocka_unit_test(joined_bins_keep_quantiles),
      cmocka_unit_test(extremes_give_a_grid),
      cmocka_unit_test(bad_data_changes_nothing),
  };
  return cmocka_run_group_tests_name("observer_properties", tests, nullptr, nullptr);
}
