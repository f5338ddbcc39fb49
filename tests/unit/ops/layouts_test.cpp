// SPDX-License-Identifier: Apache-2.0
// Operators over random shapes against ONNX Runtime: short rows and long ones, repeated or far apart. Elements follow
// from their places, and outputs are compared by a sum that each place has a weight in; see make_layouts.py.
#include "support.hpp"

namespace qtn::test {
namespace {

std::int64_t element(std::int64_t place, std::int64_t seed) {
  return static_cast<std::uint32_t>(place * 2654435761 + seed * 40503) >> 24;
}

Tensor described(const nlohmann::json &j, std::int64_t seed) {
  if (!j.at(0).is_array()) return Tensor::from_ints(j.get<std::vector<std::int64_t>>());
  const Tensor t(dtype_of(j.at(1)), Shape(j.at(0).get<std::vector<std::int64_t>>()));
  dispatch(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < t.count(); ++i) {
      const std::int64_t v = element(i, seed);
      if constexpr (std::is_same_v<T, float>)
        t.as<T>()[i] = static_cast<float>(v - 128) / 16;
      else
        t.as<T>()[i] = std::is_same_v<T, bool> ? v >= 128 : static_cast<T>(v % 100);
    }
  });
  return t;
}

double weighted_sum(const Tensor &y) {
  double sum = 0;
  dispatch(y.dtype(), [&](auto zero) {
    for (std::int64_t i = 0; i < y.count(); ++i)
      sum += static_cast<double>(y.as<const decltype(zero)>()[i]) * static_cast<double>(i * 7919 % 101 + 1);
  });
  return sum;
}

void sums_are_those_of_onnx_runtime(void **) {
  const nlohmann::json rows = golden("layouts.json");
  assert_true(rows.size() == 400);
  std::int64_t number = 0;
  for (const nlohmann::json &row : rows) {
    std::vector<Tensor> tensors;
    for (const nlohmann::json &input : row.at("inputs"))
      tensors.push_back(described(input, number + static_cast<std::int64_t>(tensors.size())));
    Inputs inputs;
    for (const Tensor &t : tensors) inputs.push_back(&t);
    const std::string op = row.at("op");
    const Tensor y = run(op.c_str(), attrs_of(row.at("attrs"), *ops::find_op(op)), inputs)[0];
    if (!(y.shape() == Shape(row.at("shape").get<std::vector<std::int64_t>>())))
      fail_test(row.dump(), " gives ", to_string(y.shape()));
    const double got = weighted_sum(y), want = row.at("sum");
    if (!(std::abs(got - want) <= 1e-6 * row.at("of").get<double>())) fail_test(row.dump(), " gives ", got);
    ++number;
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::sums_are_those_of_onnx_runtime)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
