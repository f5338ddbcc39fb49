// SPDX-License-Identifier: Apache-2.0
// An error of the function that reads samples ends quantization with this error, whatever is being tried.
#include "networks.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

void at_each_reading(void **) {
  const graph::Graph g = chain();
  const Samples good = normal_samples({1, 2, 6, 6}, 6);
  const Attrs options = attrs({{"auto", std::int64_t{1}}, {"measured_samples", std::int64_t{2}}});
  std::size_t readings = 0, fails_at = 0;  // the first reading is 1
  const Samples samples = {good.count, [&](std::size_t i) {
                             if (++readings == fails_at) fail(QTN_EINVAL, "sample ", i, " is gone");
                             return good.read(i);
                           }};
  quantize(g, Config("onnx"), samples, &options, {});
  const std::size_t all = readings;
  assert_true(all > 4 * good.count);
  for (fails_at = 1; fails_at <= all; ++fails_at) {
    readings = 0;
    expect_error(QTN_EINVAL, " is gone", [&] { quantize(g, Config("onnx"), samples, &options, {}); });
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(at_each_reading)};
  return cmocka_run_group_tests_name("quant/interrupted", tests, nullptr, nullptr);
}
