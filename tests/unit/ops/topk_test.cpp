// SPDX-License-Identifier: Apache-2.0
// TopK of lines of all kinds and lengths: what a stable sort puts first.
#include <cmath>
#include <numeric>

#include "support.hpp"

namespace qtn::test {
namespace {

/// NaN is above all.
template <class T>
bool is_above(T a, T b) {
  return a > b || (a != a && b == b);
}

/// Along the first or the last axis of a matrix.
template <class T>
void check(const Tensor &x, std::int64_t k, std::int64_t axis, bool largest) {
  const Tensor count = Tensor::from_ints(std::span(&k, 1));
  const std::vector<Tensor> got =
      run("TopK", attrs({{"axis", axis}, {"largest", std::int64_t{largest}}}), {&x, &count}, 2);
  const std::int64_t length = x.dim(static_cast<std::size_t>(axis)), lines = x.count() / length;
  const std::int64_t step = axis == 0 ? lines : 1, next = axis == 0 ? 1 : length, next_of_best = axis == 0 ? 1 : k;
  std::vector<std::int64_t> order(static_cast<std::size_t>(length));
  for (std::int64_t line = 0; line < lines; ++line) {
    const T *from = x.as<const T>() + line * next;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return largest ? is_above(from[a * step], from[b * step]) : is_above(from[b * step], from[a * step]);
    });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t at = line * next_of_best + i * step, place = got[1].as<const std::int64_t>()[at];
      if (place != order[static_cast<std::size_t>(i)] ||
          std::memcmp(got[0].as<const T>() + at, from + place * step, sizeof(T)) != 0)
        fail_test(to_string(x.shape()), ", axis ", axis, ", k ", k, ", largest ", largest, ", line ", line, ": place ",
                  i, " is ", place, ", want ", order[static_cast<std::size_t>(i)]);
    }
  }
}

/// make(i) is element i.
template <class T, class Make>
void check_all(qdtype dtype, Make &&make) {
  for (const std::int64_t length : {1, 2, 16, 33, 64, 100, 257, 1000, 5000})
    for (const std::int64_t k : {1, 2, 7, 40, 300, 5000}) {
      if (k > length) continue;
      for (const std::int64_t axis : {0, 1}) {
        const Tensor x(dtype, axis == 0 ? Shape{length, 2} : Shape{2, length});
        for (std::int64_t i = 0; i < x.count(); ++i) x.as<T>()[i] = make(i);
        check<T>(x, k, axis, true);
        check<T>(x, k, axis, false);
      }
    }
}

void lines_without_an_order(void **) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  check_all<float>(QTN_FLOAT32, [&](std::int64_t) { return normal(engine); });
  check_all<double>(QTN_FLOAT64, [&](std::int64_t) { return static_cast<double>(normal(engine)); });
  check_all<std::int64_t>(QTN_INT64, [&](std::int64_t) {
    return static_cast<std::int64_t>(std::uint64_t{engine()} << 32 | engine());
  });
  check_all<std::uint32_t>(QTN_UINT32, [&](std::int64_t) { return static_cast<std::uint32_t>(engine()); });
  check_all<std::int8_t>(QTN_INT8, [&](std::int64_t) { return static_cast<std::int8_t>(engine()); });
}

void lines_in_order(void **) {
  check_all<float>(QTN_FLOAT32, [](std::int64_t i) { return static_cast<float>(i); });
  check_all<float>(QTN_FLOAT32, [](std::int64_t i) { return static_cast<float>(-i); });
  for (const std::int64_t block : {32, 64, 128}) {  // one better, or worse, than the block before
    check_all<std::int64_t>(QTN_INT64, [block](std::int64_t i) { return i / block; });
    check_all<std::int64_t>(QTN_INT64, [block](std::int64_t i) { return -(i / block); });
  }
}

void ties(void **) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float kSome[] = {0.0f, -0.0f, 1e-45f, -kInfinity, kInfinity, std::nanf(""), -std::nanf(""), -1.0f};
  std::mt19937 engine(2);
  check_all<float>(QTN_FLOAT32, [&](std::int64_t) { return kSome[engine() % 8]; });
  check_all<float>(QTN_FLOAT32, [](std::int64_t) { return std::nanf(""); });
  check_all<float>(QTN_FLOAT32, [](std::int64_t) { return 0.5f; });
  for (const std::int64_t same : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()})
    check_all<std::int64_t>(QTN_INT64, [same](std::int64_t) { return same; });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(lines_without_an_order), cmocka_unit_test(lines_in_order),
                              cmocka_unit_test(ties)};
  return cmocka_run_group_tests_name("ops.topk", tests, nullptr, nullptr);
}
