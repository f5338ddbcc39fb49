// SPDX-License-Identifier: Apache-2.0
#include "base/leases.hpp"

#include <algorithm>
#include <random>

#include "base/size.hpp"
#include "check.hpp"

namespace qtn::test {
namespace {

constexpr std::size_t kHuge = std::size_t{1} << 61;

void expect_apart(const std::vector<Lease> &leases, std::size_t total) {
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const Lease &a = leases[i];
    if (a.place + a.bytes > total) fail_test("lease ", i, " ends at ", a.place + a.bytes, " of ", total);
    for (std::size_t k = 0; k < i; ++k) {
      const Lease &b = leases[k];
      const bool together = a.first <= b.last && b.first <= a.last;
      if (together && a.place < b.place + b.bytes && b.place < a.place + a.bytes)
        fail_test("leases ", k, " and ", i, " overlap");
    }
  }
}

void places_never_overlap(void **) {
  std::mt19937 random(1);
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < 500; ++i) {
    const std::size_t first = random() % 100;
    leases.push_back({first, first + random() % 20, 64 * (random() % 50)});
  }
  expect_apart(leases, place_leases(leases));
}

// So many at once that comparing all with all would take minutes.
void many_at_a_time(void **) {
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < 40000; ++i) leases.push_back({i / 2, i < 39000 ? 30000 : i + 2, 64 + 64 * (i % 3)});
  const std::size_t total = place_leases(leases);
  std::sort(leases.begin(), leases.end(), [](const Lease &a, const Lease &b) { return a.place < b.place; });
  leases.resize(2000);
  expect_apart(leases, total);
}

// With so many, too, what is given back is taken again.
void many_one_after_another(void **) {
  constexpr std::size_t kAtOnce = 6000, kTimes = 4;
  std::vector<Lease> leases;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kTimes * kAtOnce; ++i) {
    const std::size_t time = i / kAtOnce;
    leases.push_back({2 * time, 2 * time + 1, 64 + 64 * (i % 3)});
    if (time == 0) bytes += leases.back().bytes;
  }
  assert_int_equal(place_leases(leases), bytes);
  std::sort(leases.begin(), leases.end(), [](const Lease &a, const Lease &b) { return a.place < b.place; });
  leases.resize(2000);
  expect_apart(leases, bytes);
}

void sums_that_wrap(void **) {
  std::vector<Lease> leases(8, {0, 1, kHuge});
  expect_error(QTN_ENOMEM, "4611686018427387904", [&] { place_leases(leases); });
}

void sizes_that_wrap(void **) {
  assert_int_equal((Size(3) * 4 + 5).value(), 17);
  assert_int_equal((Size(Size::kLimit) * 1).value(), Size::kLimit);
  expect_error(QTN_ENOMEM, {}, [] { Size(kHuge) * 4; });
  expect_error(QTN_ENOMEM, {}, [] { Size(std::size_t{1} << 32) * (std::size_t{1} << 32); });
  expect_error(QTN_ENOMEM, {}, [] { Size(Size::kLimit) + 1; });
  expect_error(QTN_ENOMEM, {}, [] { Size(-1); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::places_never_overlap), cmocka_unit_test(qtn::test::many_at_a_time),
      cmocka_unit_test(qtn::test::many_one_after_another), cmocka_unit_test(qtn::test::sums_that_wrap),
      cmocka_unit_test(qtn::test::sizes_that_wrap)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
