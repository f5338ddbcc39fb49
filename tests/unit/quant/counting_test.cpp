// SPDX-License-Identifier: Apache-2.0
// Tensors so large that threads share them: the same counts and ranges as one value after the other.
#include "quant/observe/counting.hpp"

#include <cmath>

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

/// Guesses that are one too high or too low, as neighbours go, and values that count nowhere.
void counts_every_value_once(void **) {
  const Tensor x = large();
  const auto slot = [](float v) { return std::max(0, std::min(12, static_cast<std::int32_t>(std::floor(v)) + 6)); };
  const auto guess = [&](float v) { return slot(v + 0.5f) - (v < 0); };
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
      cmocka_unit_test(finds_the_ends),
      cmocka_unit_test(observers_see_all_of_it),
  };
  return cmocka_run_group_tests_name("counting", tests, nullptr, nullptr);
}
