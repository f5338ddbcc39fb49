// SPDX-License-Identifier: Apache-2.0
// Elements that are scattered: to places that are known before a run, the native engine against the operator's
// definition; and more in a row than are looked at together.
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

void expect_same(const graph::Graph &g, const Tensor &x, const Tensor &updates, bool placed) {
  const Tensor *inputs[] = {&x, &updates};
  const runtime::Session native(g, {runtime::Engine::native, 1});
  expect_equal(native.run(inputs)[0], runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0],
               to_string(updates.shape()));
  const auto steps = nlohmann::json::parse(native.profile(inputs)).at("nodes");
  assert_true((steps[0].at("kernel") == "placement") == placed);
}

graph::Graph scatter(const Shape &x, const Tensor &indices, const Shape &updates, const Attrs &a = {}) {
  GraphBuilder b;
  b.input("x", x).constant("i", indices).input("u", updates).node("ScatterND", "put", {"x", "i", "u"}, {"y"}, a);
  return b.build({"y"});
}

/// x[:, 1:, 2:] = u, as PyTorch's exporter writes it: every place is named.
void assignment_to_a_slice(void **) {
  Ints values;
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 1; j < 4; ++j)
      for (std::int64_t k = 2; k < 7; ++k) values.insert(values.end(), {i, j, k});
  const Tensor indices = Tensor::from<std::int64_t>(QTN_INT64, {3, 3, 5, 3}, values);
  expect_same(scatter({3, 4, 7}, indices, {3, 3, 5}), random({3, 4, 7}, -1, 1, 1), random({3, 3, 5}, -1, 1, 2), true);
}

/// Rows that follow one another or not, from the end too; the last of those for one place stays.
void rows(void **) {
  const Tensor indices = Tensor::from<std::int64_t>(QTN_INT64, {6, 1}, Ints{1, 2, -1, 0, 2, 3});
  const Tensor x = random({5, 3}, -1, 1, 3), updates = random({6, 3}, -1, 1, 4);
  expect_same(scatter({5, 3}, indices, {6, 3}), x, updates, true);
  expect_same(scatter({5, 3}, indices, {6, 3}, attrs({{"reduction", std::string("add")}})), x, updates, false);
}

void places_outside(void **) {
  const Tensor indices = Tensor::from<std::int64_t>(QTN_INT64, {1, 1}, Ints{5});
  const Tensor x = random({5, 3}, -1, 1, 3), updates = random({1, 3}, -1, 1, 4);
  const Tensor *inputs[] = {&x, &updates};
  const runtime::Session session(scatter({5, 3}, indices, {1, 3}), {runtime::Engine::native, 1});
  expect_error(QTN_EINVAL, "ScatterND: index 5", [&] { session.run(inputs); });
}

/// Each place has the sum of the numbers that name it.
void long_rows(void **) {
  constexpr std::int64_t kLength = 600, kPlaces = 7;
  GraphBuilder b;
  b.input("x", {1, kPlaces}).input("i", {1, kLength}, QTN_INT64).input("u", {1, kLength});
  b.node("ScatterElements", "put", {"x", "i", "u"}, {"y"},
         attrs({{"axis", std::int64_t{1}}, {"reduction", std::string("add")}}));
  Ints places;
  std::vector<float> sums(kPlaces, 0.0f), numbers;
  for (std::int64_t i = 0; i < kLength; ++i) {
    places.push_back(i * i % kPlaces);
    numbers.push_back(static_cast<float>(i));
    sums[static_cast<std::size_t>(places.back())] += numbers.back();
  }
  const Tensor x = floats({1, kPlaces}, std::vector<float>(kPlaces, 0.0f)),
               indices = Tensor::from<std::int64_t>(QTN_INT64, {1, kLength}, places),
               updates = floats({1, kLength}, numbers);
  const Tensor *inputs[] = {&x, &indices, &updates};
  const runtime::Session session(b.build({"y"}), {runtime::Engine::native, 1});
  expect_equal(session.run(inputs)[0], floats({1, kPlaces}, sums), "sums");
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::assignment_to_a_slice), cmocka_unit_test(qtn::test::rows),
                              cmocka_unit_test(qtn::test::places_outside), cmocka_unit_test(qtn::test::long_rows)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
