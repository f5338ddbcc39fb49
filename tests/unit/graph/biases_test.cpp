// SPDX-License-Identifier: Apache-2.0
// Biases of heads: which become those of the product, and that the numbers stay.
#include <cmath>

#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

/// x [2, 5, 6] by weights [6, 12], whose columns are divided among heads, plus a bias.
struct Form {
  std::vector<std::int64_t> parts = {2, 5, 3, 4};
  Shape bias = {3, 4};
  bool between_ones = false;  ///< with an axis of length 1, and without it again
  std::vector<std::string> outputs = {"y"};
};

graph::Graph written(const Form &form) {
  GraphBuilder b;
  b.input("x", {2, 5, 6}).constant("w", GraphBuilder::ramp({6, 12})).constant("bias", GraphBuilder::ramp(form.bias));
  b.constant("parts", Tensor::from_ints(form.parts)).constant("axis", Tensor::from_ints(std::vector<std::int64_t>{1}));
  b.node("MatMul", "product", {"x", "w"}, {"p"}).node("Reshape", "divide", {"p", "parts"}, {"h"});
  if (form.between_ones)
    b.node("Unsqueeze", "one", {"h", "axis"}, {"o"}).node("Squeeze", "none", {"o", "axis"}, {"heads"});
  else
    b.node("Identity", "same", {"h"}, {"heads"});
  b.node("Add", "add", {"bias", "heads"}, {"y"});
  graph::Graph g = b.build(form.outputs);
  graph::remove_identities(g);
  return g;
}

void expect(const Form &form, bool brought) {
  const graph::Graph g = written(form);
  graph::Graph other = g;
  graph::bring_biases_to_products(other);
  assert_int_equal(other.nodes.size(), g.nodes.size());
  assert_string_equal(other.nodes[brought ? 1 : other.nodes.size() - 1].op->name, "Add");
  const std::vector<Tensor> x{GraphBuilder::ramp({2, 5, 6})};
  const std::vector<Tensor> want = graph::evaluate(g, x), got = graph::evaluate(other, x);
  for (std::size_t o = 0; o < want.size(); ++o) assert_true(equal(want[o], got[o]));
}

void test_heads(void **) {
  expect({}, true);
  expect({.bias = {1, 1, 3, 4}}, true);
  expect({.parts = {0, 0, 3, 4}}, true);
  expect({.parts = {5, 2, 2, 3, 2}, .bias = {2, 3, 2}}, true);
  expect({.parts = {10, 12}, .bias = {12}}, true);
  expect({.between_ones = true}, true);
}

void test_what_stays(void **) {
  expect({.bias = {4}}, false);                               // the same for each head
  expect({.bias = {3, 1}}, false);                            // the same for all of a head
  expect({.bias = {5, 1, 1}}, false);                         // of places
  expect({.parts = {2, 3, 5, 4}, .bias = {3, 1, 4}}, false);  // so many, but of other axes
  expect({.parts = {2, 60}, .bias = {60}}, false);
  expect({.outputs = {"y", "h"}}, false);  // what others read
}

/// Columns of a batch of one may be those of several rows where there are more.
void test_open_batches(void **) {
  const auto brought = [](const std::vector<std::int64_t> &parts, const Shape &bias) {
    GraphBuilder b;
    b.input("x", {-1, 4}).constant("w", GraphBuilder::ramp({4, 8})).constant("bias", GraphBuilder::ramp(bias));
    b.constant("parts", Tensor::from_ints(parts)).node("MatMul", "product", {"x", "w"}, {"p"});
    b.node("Reshape", "divide", {"p", "parts"}, {"h"}).node("Add", "add", {"h", "bias"}, {"y"});
    const graph::Graph g = b.build({"y"});
    graph::Graph other = g;
    graph::bring_biases_to_products(other);
    for (const std::int64_t batch : {1, 2, 3}) {
      const std::vector<Tensor> x{GraphBuilder::ramp({batch, 4})};
      assert_true(equal(graph::evaluate(g, x)[0], graph::evaluate(other, x)[0]));
    }
    return std::string_view(other.nodes[1].op->name) == "Add";
  };
  assert_false(brought({8, -1}, {8, 1}));
  assert_true(brought({-1, 2, 4}, {2, 4}));
  assert_true(brought({0, 4, 2}, {1, 4, 2}));
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_what_stays),
                              cmocka_unit_test(test_open_batches)};
  return cmocka_run_group_tests_name("graph/biases", tests, nullptr, nullptr);
}
