// SPDX-License-Identifier: Apache-2.0
// Random numbers beside the vectors published with their algorithm, and what they are used for.
#include "base/random.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "support.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

void words_are_philox(void **) {
  const auto file = golden("training/random.json");
  for (const auto &c : file.at("cases")) {
    const auto counter = c.at("counter").get<RandomWords>(), want = c.at("output").get<RandomWords>();
    const auto key = c.at("key").get<std::array<std::uint32_t, 2>>();
    assert_true(philox(counter, key) == want);
    // The same by seed, stream and index.
    const auto wide = [](std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; };
    const Random random(wide(key[0], key[1]), wide(counter[2], counter[3]));
    assert_true(random.block(wide(counter[0], counter[1])) == want);
  }
  assert_int_equal(file.at("cases").size(), 23);
}

void words_are_numbered_through(void **) {
  const Random random(7, 3);
  for (std::uint64_t i = 0; i < 20; ++i) assert_true(random.word(i) == random.block(i / 4)[i % 4]);
  assert_true(random.word(1) != Random(8, 3).word(1) && random.word(1) != Random(7, 4).word(1));
}

/// 100000 numbers: a mean more than 5 standard deviations from a half would be one stream in a million's.
void uniform_numbers_are_spread_evenly(void **) {
  constexpr int kCount = 100'000, kBins = 10;
  const Random random(1, 2);
  double sum = 0;
  std::array<int, kBins> bins{};
  for (int i = 0; i < kCount; ++i) {
    const float u = random.uniform(static_cast<std::uint64_t>(i));
    assert_true(u >= 0 && u < 1);
    sum += static_cast<double>(u);
    ++bins[static_cast<std::size_t>(u * kBins)];
  }
  assert_true(std::fabs(sum / kCount - 0.5) < 5 * std::sqrt(1.0 / 12 / kCount));
  for (const int count : bins) assert_true(std::abs(count - kCount / kBins) < 500);
}

void shuffles_reach_every_order_alike(void **) {
  constexpr int kCount = 24'000;
  std::map<std::array<int, 4>, int> orders;
  for (std::uint64_t epoch = 0; epoch < kCount; ++epoch) {
    std::array<int, 4> items{0, 1, 2, 3};
    Random(5, epoch).shuffle(std::span<int>(items));
    ++orders[items];
  }
  assert_int_equal(orders.size(), 24);
  for (const auto &[order, count] : orders) assert_true(std::abs(count - kCount / 24) < 160);

  std::vector<int> many(1000), sorted(1000);
  std::iota(many.begin(), many.end(), 0);
  sorted = many;
  Random(5, 0).shuffle(std::span(many));
  assert_true(many != sorted);
  std::sort(many.begin(), many.end());
  assert_true(many == sorted);
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(words_are_philox),
      cmocka_unit_test(words_are_numbered_through),
      cmocka_unit_test(uniform_numbers_are_spread_evenly),
      cmocka_unit_test(shuffles_reach_every_order_alike),
  };
  return cmocka_run_group_tests_name("random", tests, nullptr, nullptr);
}
