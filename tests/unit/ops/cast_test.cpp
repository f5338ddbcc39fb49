// SPDX-License-Identifier: Apache-2.0
// Casts of many floats to int64, among which there may be some that no integer is.
#include <cmath>

#include "support.hpp"

namespace qtn::test {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kLargest = std::numeric_limits<std::int64_t>::max();

struct Pair {
  float x;
  std::int64_t y;
};

/// So many floats, one of which is given.
void check(std::int64_t count, std::int64_t at, const Pair &one) {
  const Tensor x(QTN_FLOAT32, {count});
  const auto float_at = [](std::int64_t i) { return static_cast<float>(i - 400) * 1.75f; };
  for (std::int64_t i = 0; i < count; ++i) x.as<float>()[i] = i == at ? one.x : float_at(i);
  const Tensor y = run("Cast", attrs({{"to", std::int64_t{QTN_INT64}}}), {&x})[0];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t want = i == at ? one.y : static_cast<std::int64_t>(std::trunc(float_at(i)));
    const std::int64_t got = y.as<const std::int64_t>()[i];
    if (got != want) fail_test(count, " floats, ", one.x, " at ", at, ": element ", i, " is ", got, ", want ", want);
  }
}

void one_that_is_no_integer(void **) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Pair kPairs[] = {{std::nanf(""), 0},       {kInfinity, kLargest},       {-kInfinity, kLeast},
                         {0x1p63f, kLargest},      {-0x1p63f, kLeast},          {0x1.fffffep62f, 0x7fffff8000000000},
                         {-0x1.8p63f, kLeast},     {-0x1.fffffep62f, -0x7fffff8000000000}};
  for (const Pair &pair : kPairs)
    for (const std::int64_t count : {1, 255, 256, 257, 1000, 40000})
      for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) check(count, at, pair);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(one_that_is_no_integer)};
  return cmocka_run_group_tests_name("ops.cast", tests, nullptr, nullptr);
}
