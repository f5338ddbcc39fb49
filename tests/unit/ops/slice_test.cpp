// SPDX-License-Identifier: Apache-2.0
// Slice of dimensions that no memory holds, by starts, ends and steps up to the ends of their type.
#include "golden.hpp"
#include "ops/op.hpp"

namespace qtn::test {
namespace {

std::int64_t slice_length(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto one = [](std::int64_t value) { return Tensor::from_ints(std::span<const std::int64_t>(&value, 1)); };
  const Tensor x = Tensor::meta(QTN_INT8, {2, dim}), starts = one(start), ends = one(end), axes = one(1),
               steps = one(step);
  const std::vector<const Tensor *> inputs{&x, &starts, &ends, &axes, &steps};
  const Attrs none;
  const auto types = ops::infer_op(*ops::find_op("Slice"), ops::Call{none, inputs, 1});
  assert_int_equal(types[0].shape[0], 2);
  return types[0].shape[1];
}

void lengths_are_those_of_python(void **) {
  const nlohmann::json rows = golden("slices.json");
  assert_true(rows.size() > 3000);
  for (const nlohmann::json &row : rows) {
    const std::int64_t length = slice_length(row[0], row[1], row[2], row[3]);
    if (length != row[4].get<std::int64_t>()) fail_test(row.dump(), " gives ", length);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::lengths_are_those_of_python)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
