// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/lut.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::LutKernel;

void test_all_lengths(void **) {
  each_kernel(kernels::lut_kernels(), [](const LutKernel &kernel) {
    Random random(1);
    Guarded<std::uint8_t> table(256);
    for (std::size_t n = 0; n <= 300; ++n) {
      random.fill(table.span(), 0, 255);
      Guarded<std::uint8_t> x(n), y(n);
      random.fill(x.span(), 0, 255);
      std::vector<std::uint8_t> want(n);
      for (std::size_t i = 0; i < n; ++i) want[i] = table[x[i]];
      kernel.run({y.data(), x.data(), 1, n, 0, table.data()});
      expect_result<std::uint8_t>(y, want, kernel.name, "out of place");
      kernel.run({x.data(), x.data(), 1, n, 0, table.data()});
      expect_result<std::uint8_t>(x, want, kernel.name, "in place");
    }
  });
}

void test_all_values(void **) {
  each_kernel(kernels::lut_kernels(), [](const LutKernel &kernel) {
    std::vector<std::uint8_t> x(256), table(256), y(256);
    for (std::size_t i = 0; i < 256; ++i)
      x[i] = static_cast<std::uint8_t>(i), table[i] = static_cast<std::uint8_t>(i * 7 + 3);
    kernel.run({y.data(), x.data(), 1, 256, 0, table.data()});
    expect_same<std::uint8_t>(y, table, kernel.name, "all values");
  });
}

/// What lies between rows stays as it is.
void test_rows(void **) {
  each_kernel(kernels::lut_kernels(), [](const LutKernel &kernel) {
    Random random(2);
    std::vector<std::uint8_t> table(256);
    for (std::size_t columns = 1; columns <= 140; ++columns) {
      random.fill(std::span(table), 0, 255);
      const auto rows = random.in<std::size_t>(2, 6), row = columns + random.in<std::size_t>(0, 9);
      Guarded<std::uint8_t> x((rows - 1) * row + columns);
      random.fill(x.span(), 0, 255);
      std::vector<std::uint8_t> want(x.data(), x.data() + x.size());
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < columns; ++i) want[r * row + i] = table[x[r * row + i]];
      kernel.run({x.data(), x.data(), rows, columns, static_cast<std::ptrdiff_t>(row), table.data()});
      expect_result<std::uint8_t>(x, want, kernel.name, "rows");
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_lengths), cmocka_unit_test(test_all_values),
                              cmocka_unit_test(test_rows)};
  return run_at_both_edges("kernels.lut", tests);
}
