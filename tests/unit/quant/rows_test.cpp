// SPDX-License-Identifier: Apache-2.0
// What counts as a sample: a row where the first axis is the batch, else what a call is given.
#include "quant/rows.hpp"

#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

using graph::Graph;

/// A graph whose input and output are declared so; nullopt: not at all.
Graph declared(const std::optional<Shape> &x, const std::optional<Shape> &y) {
  Graph g;
  g.inputs = {g.add_value({"x", QTN_FLOAT32, x, {}, {}, {}})};
  g.outputs = {g.add_value({"y", QTN_FLOAT32, y, {}, {}, {}})};
  return g;
}

std::size_t rows(const Graph &g, const Shape &given) {
  const Tensor x(QTN_FLOAT32, given);
  return quant::rows_of(g, std::span(&x, 1));
}

void test_what_a_batch_is(void **) {
  assert_int_equal(rows(declared(Shape{-1, 3}, Shape{-1, 2}), {5, 3}), 5);
  assert_int_equal(rows(declared(Shape{4, 3}, Shape{4, 2}), {4, 3}), 4);
  assert_int_equal(rows(declared(Shape{4, 3}, Shape{-1, 2}), {4, 3}), 4);
  assert_int_equal(rows(declared(Shape{4, 3}, std::nullopt), {4, 3}), 4);
  assert_int_equal(rows(declared(std::nullopt, std::nullopt), {7, 3}), 7);
  assert_int_equal(rows(declared(Shape{3, 8, 8}, Shape{10}), {3, 8, 8}), 1);  // an image without a batch
  assert_int_equal(rows(declared(Shape{3, 8, 8}, Shape{}), {3, 8, 8}), 1);    // and its score
  assert_int_equal(rows(declared(Shape{16}, Shape{16}), {16}), 1);            // a signal
  assert_int_equal(rows(declared(Shape{}, Shape{}), {}), 1);
  assert_int_equal(rows(declared(Shape{-1, 3}, Shape{-1, 2}), {0, 3}), 0);
  assert_int_equal(quant::rows_of(Graph(), {}), 1);
}

void test_counts_follow_numbers(void **) {
  const Graph g = declared(Shape{-1, 3}, Shape{-1, 2});
  const quant::Samples all{6, [](std::size_t i) {
                             return std::vector<Tensor>{Tensor(QTN_FLOAT32, {static_cast<std::int64_t>(i) + 1, 3})};
                           }};
  quant::RowCount count(g);
  const quant::Samples watched = count.watch(all);
  const quant::Division parts = quant::divide(watched, 2);
  for (int twice = 0; twice < 2; ++twice)
    for (std::size_t i = 0; i < all.count; ++i) watched.read(i);
  assert_int_equal(count.of(watched), 21);
  std::size_t held_back = 0;
  for (std::size_t i = 0; i < parts.held_back.count; ++i) held_back += parts.held_back.number(i) + 1;
  assert_int_equal(parts.held_back.count, 2);
  assert_int_equal(count.of(parts.held_back), held_back);
  assert_int_equal(count.of(parts.fitted) + count.of(parts.rest), 21);
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_what_a_batch_is),
      cmocka_unit_test(qtn::test::test_counts_follow_numbers),
  };
  return cmocka_run_group_tests_name("quant/rows", tests, nullptr, nullptr);
}
