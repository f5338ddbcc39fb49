// SPDX-License-Identifier: Apache-2.0
// BLAS counts in int. A product with a larger side or stride is refused before a number is narrowed, so nothing is read:
// operands of that test are one element each. BLAS also refuses rows that lie less far apart than they are long, even if
// there is one row alone.
#include <limits>

#include "blas/gemm.hpp"
#include "check.hpp"

namespace qtn::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<int>::max(), kOver = kMost + 1;

struct Product {
  std::int64_t m = 1, n = 1, k = 1, lda = 1, ldb = 1, ldc = 1;
  bool turned = false;
};

template <class T>
T run(const Product &p) {
  const T a = 3, b = 5;
  T c = 0;
  blas::gemm(p.m, p.n, p.k, T(1), &a, {p.lda, p.turned}, &b, {p.ldb, p.turned}, T(0), &c, p.ldc);
  return c;
}

template <class T>
void check() {
  assert_true(run<T>({}) == 15);
  // The largest strides that there are, of one row.
  assert_true(run<T>({1, 1, 1, kMost, kMost, kMost, false}) == 15);
  for (const bool turned : {false, true}) {
    for (const std::int64_t over : {kOver, kOver + kOver, std::int64_t{1} << 40})
      for (const Product &p : {Product{1, 1, 1, over, 1, 1, turned}, Product{1, 1, 1, 1, over, 1, turned},
                               Product{1, 1, 1, 1, 1, over, turned}, Product{1, 1, over, over, over, 1, turned}})
        expect_error(QTN_EUNSUPPORTED, "too large for BLAS", [&] { run<T>(p); });
    // The longer of these is cut into 16 pieces, which must be short enough; the other one is not cut.
    const std::int64_t far = 17 * kOver;
    expect_error(QTN_EUNSUPPORTED, "too large for BLAS", [&] { run<T>({far, 1, 1, 1, 1, 1, turned}); });
    expect_error(QTN_EUNSUPPORTED, "too large for BLAS", [&] { run<T>({1, far, 1, 1, 1, 1, turned}); });
    expect_error(QTN_EUNSUPPORTED, "too large for BLAS", [&] { run<T>({far, kOver, 1, 1, 1, 1, turned}); });
  }
}

/// A view of one row has any stride along that axis.
void of_single_rows(void **) {
  const float a[] = {1, 2, 3}, b[] = {4, 5, 6};
  for (const std::int64_t stride : {0, 1, 2}) {
    float c = 0, table[9] = {};
    blas::gemm(1, 1, 3, 1.0f, a, {stride}, b, {stride, true}, 0.0f, &c, stride);  // rows of three
    assert_true(c == 32);
    blas::gemm(3, 3, 1, 1.0f, a, {stride, true}, b, {stride}, 0.0f, table, 3);
    assert_true(table[0] == 4 && table[5] == 12 && table[8] == 18);
  }
}

void of_floats(void **) { check<float>(); }
void of_doubles(void **) { check<double>(); }

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::of_floats), cmocka_unit_test(qtn::test::of_doubles),
                              cmocka_unit_test(qtn::test::of_single_rows)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
