// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax of rows that are shorter than a vector and are computed several at a time, and of longer ones:
// the formula in float64, and for each row the bits that it has alone.
#include <cmath>

#include "support.hpp"

namespace qtn::test {
namespace {

double formula(const float *row, std::int64_t length, std::int64_t k, bool logarithm) {
  const double top = *std::max_element(row, row + length);
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += std::exp(static_cast<double>(row[i]) - top);
  const double y = static_cast<double>(row[k]) - top - std::log(sum);
  return logarithm ? y : std::exp(y);
}

void check(const char *op, const Tensor &x) {
  const std::int64_t rows = x.dim(0), length = x.dim(1);
  const Tensor y = run(op, {}, {&x})[0];
  for (std::int64_t r = 0; r < rows; ++r) {
    const Tensor row = x.slice(0, r, r + 1, 1).to_contiguous(), alone = run(op, {}, {&row})[0];
    for (std::int64_t k = 0; k < length; ++k) {
      const float got = y.as<const float>()[r * length + k];
      const double want = formula(row.as<const float>(), length, k, op[0] == 'L');
      if (got != alone.as<const float>()[k] || !close(static_cast<double>(got), want, 1e-6))
        fail_test(op, " of ", rows, "x", length, ", row ", r, ": ", got, ", alone ", alone.as<const float>()[k],
                  ", want ", want);
    }
  }
}

void rows_of_all_lengths(void **) {
  std::mt19937 engine(1);
  for (const char *op : {"Softmax", "LogSoftmax"})
    for (std::int64_t length = 1; length <= 20; ++length)
      for (const std::int64_t rows : {1, 2, 15, 16, 17, 50}) check(op, random_floats(engine, {rows, length}));
  check("Softmax", random_floats(engine, {9000, 3}));
  check("LogSoftmax", random_floats(engine, {1100, 3}));
}

void rows_without_a_number(void **) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = floats({3, 2}, {0, 1, kNaN, 2, -kInfinity, 3}), y = run("Softmax", {}, {&x})[0];
  const float *p = y.as<const float>();
  assert_true(std::isfinite(p[0]) && std::isnan(p[3]) && p[4] == 0 && p[5] == 1);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(rows_of_all_lengths), cmocka_unit_test(rows_without_a_number)};
  return cmocka_run_group_tests_name("ops.short_rows", tests, nullptr, nullptr);
}
