// SPDX-License-Identifier: Apache-2.0
// A Gemm whose addend is computed: which become a product and an Add, and that the numbers stay.
#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "ops/support.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

std::string ops_of(const graph::Graph &g) {
  std::string ops;
  for (const graph::Node &node : g.nodes) ops += (ops.empty() ? "" : " ") + std::string(node.op->name);
  return ops;
}

/// x [3, 4] by w, and c [3, 5] or what it is said to be.
void expect(const Attrs &attributes, const Shape &addend, const std::string &ops,
            std::optional<ops::Clamp> clamp = {}) {
  const bool turned = attributes.get_int("transB", 0) != 0;
  GraphBuilder b;
  b.input("x", {3, 4}).input("c", addend).constant("w", GraphBuilder::ramp(turned ? Shape{5, 4} : Shape{4, 5}));
  b.node("Gemm", "gemm", {"x", "w", "c"}, {"y"}, attributes);
  graph::Graph g = b.build({"y"});
  g.nodes[0].clamp = clamp;
  graph::Graph apart = g;
  graph::add_after_products(apart);
  assert_string_equal(ops_of(apart).c_str(), ops.c_str());
  assert_int_equal(apart.nodes.back().clamp.has_value(), clamp.has_value());
  const std::vector<Tensor> inputs{GraphBuilder::ramp({3, 4}), GraphBuilder::ramp(addend)};
  expect_equal(graph::evaluate(apart, inputs)[0], graph::evaluate(g, inputs)[0], 1e-6, ops);
}

void products_and_sums(void **) {
  expect(attrs({}), {3, 5}, "Gemm Add");
  expect(attrs({}), {5}, "Gemm Add");
  expect(attrs({}), {}, "Gemm Add");
  expect(attrs({{"transB", std::int64_t{1}}, {"alpha", 0.5}}), {3, 1}, "Gemm Add");
  expect(attrs({{"beta", -2.0}}), {1, 5}, "Mul Gemm Add");
  expect(attrs({}), {3, 5}, "Gemm Add", ops::Clamp{0, 1});
}

void what_stays(void **) {
  expect(attrs({{"beta", 0.0}}), {3, 5}, "Gemm");
  GraphBuilder b;
  b.input("x", {3, 4}).input("v", {4, 5}).input("c", {5});
  b.constant("w", GraphBuilder::ramp({4, 5})).constant("d", GraphBuilder::ramp({5}));
  b.node("Gemm", "known", {"x", "w", "d"}, {"y"}).node("Gemm", "computed", {"x", "v", "c"}, {"z"});
  b.node("Gemm", "none", {"x", "w"}, {"u"});
  graph::Graph g = b.build({"y", "z", "u"});
  graph::add_after_products(g);
  assert_string_equal(ops_of(g).c_str(), "Gemm Gemm Gemm");
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(products_and_sums), cmocka_unit_test(what_stays)};
  return cmocka_run_group_tests_name("graph/addends", tests, nullptr, nullptr);
}
