// SPDX-License-Identifier: Apache-2.0
// The accuracy that is reported on held-back samples: of ranges that these have not widened.
#include "networks.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// The second and the fifth of six samples are held back; the second is twenty times as large as the others.
Tensor sample(std::size_t i) {
  const Tensor x = normal({1, 2, 6, 6}, static_cast<unsigned>(100 + i));
  for (std::int64_t k = 0; i == 1 && k < x.count(); ++k) x.as<float>()[k] *= 20;
  return x;
}

Samples samples_of(std::vector<std::size_t> numbers) {
  return {numbers.size(), [numbers](std::size_t i) { return std::vector<Tensor>{sample(numbers[i])}; }};
}

void ranges_that_have_not_seen_them(void **) {
  const graph::Graph g = chain();
  const Samples all = samples_of({0, 1, 2, 3, 4, 5}), held_back = samples_of({1, 4});
  const graph::Graph others = convert(calibrated(g, Config("onnx"), samples_of({0, 2, 3, 5})), nullptr);
  const double unseen = difference(g, others, held_back).sqnr_db();
  for (const bool plain : {true, false}) {
    Attrs options;
    options.set("plain", std::int64_t{plain});
    const Quantized q = quantize(g, Config("onnx"), all, &options, {});
    const double seen = difference(g, q.graph, held_back).sqnr_db();
    assert_true(q.report.held_back && q.report.judges == 2);
    assert_true(seen > unseen + 10);
    if (plain) assert_float_equal(q.report.accuracy->sqnr_db(), unseen, 1e-6);
    assert_true(q.report.accuracy->sqnr_db() < unseen + 3);
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(ranges_that_have_not_seen_them)};
  return cmocka_run_group_tests_name("quant/held_back", tests, nullptr, nullptr);
}
