// SPDX-License-Identifier: Apache-2.0
// Dimensions and blocks at the ends of their type.
#include <limits>

#include "check.hpp"
#include "core/scales.hpp"

namespace qtn::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

void strides_of_nothing_do_not_wrap(void **) {
  const std::int64_t many = 5000000000;
  assert_true(contiguous_strides({0, 3, many}) == Shape({3 * many, many, 1}));
  assert_true(contiguous_strides({0, 3, many, many}) == Shape({0, 0, many, 1}));
  assert_true(channels_last_strides({0, many, many, 3}) == Shape({0, 1, 3 * many, many}));
}

void bytes_do_not_wrap(void **) {
  assert_int_equal(storage_nbytes(QTN_INT4, 5), 3);
  assert_int_equal(storage_nbytes(QTN_FLOAT64, 5), 40);
  for (const std::int64_t count : {kMost, std::int64_t{1} << 62, (std::int64_t{1} << 60) + 1})
    expect_error(QTN_ESHAPE, "too large", [&] { storage_nbytes(QTN_FLOAT32, count); });
  expect_error(QTN_ESHAPE, "too large", [] { Tensor(QTN_FLOAT32, {std::int64_t{1} << 62}); });
}

void one_block_of_any_length(void **) {
  const Quantizer q(QTN_INT8, QTN_PER_BLOCK_SYMMETRIC, 0, {1.0, 2.0}, {0, 0}, Numerics::onnx, kMost);
  assert_true(scale_shape(q, {6, 2}) == Shape({1, 2}));
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::strides_of_nothing_do_not_wrap),
                              cmocka_unit_test(qtn::test::bytes_do_not_wrap),
                              cmocka_unit_test(qtn::test::one_block_of_any_length)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
