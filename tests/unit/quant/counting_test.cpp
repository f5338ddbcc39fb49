// SPDX-License-Identifier: Apache-2.0
// Tensors so large that threads share them: the same counts and ranges as one value after the other.
#include "quant/observe/counting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/observe/calibration_histogram.hpp"
#include "quant/observe/kinds.hpp"
#include "support.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr std::int64_t kCount = 200'003;

/// Half of them zero, as a Relu leaves them; both signs.
Tensor large() {
  Tensor x(QTN_FLOAT32, {kCount});
  for (std::int64_t i = 0; i < kCount; ++i)
    x.as<float>()[i] = i * 48271 % 7 < 4 ? 0.0f : static_cast<float>(i * 16807 % 20011 - 9000) / 997.0f;
  return x;
}

template <class Body>
void for_thread_counts(Body body) {
  for (const int threads : {1, 2, 3, 16}) {
    set_default_threads(threads);
    body();
  }
  set_default_threads(0);
}

/// Guesses that are unsure, and may be one too high or too low; values that count nowhere.
void counts_every_value_once(void **) {
  const Tensor x = large();
  const auto slot = [](float v) { return std::max(0, std::min(12, static_cast<std::int32_t>(std::floor(v)) + 6)); };
  const auto guess = [&](float v) {
    const std::int32_t near = std::max(0, slot(v + 0.5f) - (v < 0));
    return near == slot(v) && v > 1 ? near : ~near;
  };
  const auto settle = [&](float v, std::int32_t guessed) {
    assert_true(std::abs(guessed - slot(v)) <= 1);
    return static_cast<std::size_t>(slot(v));
  };
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{32768}, std::int64_t{32769}, kCount}) {
    std::vector<std::uint64_t> want(12, 3);
    for (std::int64_t i = 0; i < size; ++i)
      if (const std::int32_t at = slot(x.as<float>()[i]); at > 0) ++want[static_cast<std::size_t>(at - 1)];
    for_thread_counts([&] {
      const std::span values{x.as<const float>(), static_cast<std::size_t>(size)};
      std::vector<std::uint64_t> guessed(12, 3), settled(12, 3);
      count_values(values, guessed, slot, kAsGuessed);
      count_values(values, settled, guess, settle);
      assert_true(guessed == want);
      assert_true(settled == want);
    });
  }
}

/// Values on the edges of bins and next to them: bin i has those from edge i on below edge i + 1, the last one its upper edge,
/// too, as numpy.histogram says.
void values_at_edges_are_in_their_bins(void **) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Binning binning : {Binning::onnx_absolute, Binning::onnx_signed})
    for (const std::int64_t bins : {2, 128, 2048})
      for (const float most : {6.0f, 0.7f, 12345.678f, 1e-20f, 3e-37f, 1.5e-38f}) {
        CalibrationHistogram first(binning, bins);
        const std::vector<float> ends = {-most, binning == Binning::onnx_signed ? most : most / 7, 0.0f};
        first.add(binning == Binning::onnx_signed ? std::span(ends) : std::span(ends).first(2));
        std::vector<float> edges, values = ends;
        for (std::size_t i = 0; i <= static_cast<std::size_t>(bins); ++i) edges.push_back(first.edge(i));
        if (binning == Binning::onnx_absolute) values.pop_back();
        for (const float edge : edges)
          for (const float value : {edge, std::nextafter(edge, -infinity), std::nextafter(edge, infinity)})
            if (value >= edges.front() && value <= edges.back()) values.push_back(value);
        CalibrationHistogram all(binning, bins);
        all.add(values);
        std::vector<std::uint64_t> want(static_cast<std::size_t>(bins));
        for (const float value : values) {
          const float seen = binning == Binning::onnx_signed ? value : std::fabs(value);
          const auto after = std::upper_bound(edges.begin(), edges.end() - 1, seen) - edges.begin();
          ++want[static_cast<std::size_t>(after - 1)];
        }
        if (all.counts() != want) fail_test(bins, " bins up to ", most);
      }
}

void finds_the_ends(void **) {
  Tensor x = large();
  x.as<float>()[kCount - 2] = -1e6f;
  x.as<float>()[100'000] = 1e6f;
  for_thread_counts([&] {
    const kernels::Extent e = extent_of(x.as<const float>(), kCount);
    assert_true(e.min == -1e6f && e.max == 1e6f && e.finite);
  });
  x.as<float>()[150'000] = NAN;
  for_thread_counts([&] { assert_false(extent_of(x.as<const float>(), kCount).finite); });
}

/// Observers whose merging is exact do not care how a tensor is cut.
void observers_see_all_of_it(void **) {
  const Tensor x = large();
  for (const char *kind : {"minmax", "mse"}) {
    const auto pieces = make_observer(kind, {});
    for (std::int64_t at = 0; at < kCount; at += 1009) pieces->observe(x.slice(0, at, std::min(at + 1009, kCount), 1));
    for_thread_counts([&] {
      const auto whole = make_observer(kind, {});
      whole->observe(x);
      assert_true(whole->save() == pieces->save());
    });
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(counts_every_value_once),
      cmocka_unit_test(values_at_edges_are_in_their_bins),
      cmocka_unit_test(finds_the_ends),
      cmocka_unit_test(observers_see_all_of_it),
  };
  return cmocka_run_group_tests_name("counting", tests, nullptr, nullptr);
}
