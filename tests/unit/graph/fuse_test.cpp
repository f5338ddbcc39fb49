// SPDX-License-Identifier: Apache-2.0
// What optimize() takes out of a graph, and that the numbers stay: ours without the pass, exactly.
#include "graph/evaluate.hpp"
#include "graph/passes.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

std::size_t count_of(const graph::Graph &g, std::string_view op) {
  return static_cast<std::size_t>(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const graph::Node &node) { return node.op->name == op; }));
}

Tensor int64s(const Ints &values) { return Tensor::from_ints(values); }

/// x [1][2][5][6], a Pad with these inputs, a convolution 3x3 with pads of its own.
graph::Graph padded(const Ints &pads, const Tensor &value, const Attrs &pad_attrs, const Attrs &conv_attrs) {
  GraphBuilder b;
  b.input("x", {1, 2, 5, 6}).constant("pads", int64s(pads)).constant("w", GraphBuilder::ramp({3, 2, 3, 3}));
  if (value.has_data()) b.constant("value", value);
  b.node("Pad", "pad", {"x", "pads", value.has_data() ? "value" : ""}, {"p"}, pad_attrs);
  b.node("Conv", "conv", {"p", "w"}, {"y"}, conv_attrs);
  return b.build({"y"});
}

void expect(const graph::Graph &g, std::size_t pads_left) {
  const Tensor x = GraphBuilder::ramp({1, 2, 5, 6});
  const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0];
  graph::Graph smaller = g;
  graph::optimize(smaller);
  assert_int_equal(count_of(smaller, "Pad"), pads_left);
  const Tensor got = graph::evaluate(smaller, std::vector<Tensor>{x})[0];
  assert_true(got.shape() == want.shape());
  assert_memory_equal(got.data(), want.data(), static_cast<std::size_t>(want.count()) * sizeof(float));
}

void test_pads(void **) {
  const Tensor none, zero = Tensor::scalar(0.0f), one = Tensor::scalar(1.0f);
  const Attrs own = attrs({{"pads", Ints{1, 0, 2, 1}}, {"strides", Ints{2, 1}}});
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, none, {}, {}), 0);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, zero, {}, own), 0);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, one, {}, own), 1);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, none, attrs({{"mode", std::string("edge")}}), own), 1);
  expect(padded({0, 0, -1, 2, 0, 0, 0, 3}, none, {}, own), 1);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, none, {}, attrs({{"auto_pad", std::string("SAME_UPPER")}})), 1);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_pads)};
  return cmocka_run_group_tests_name("graph.fuse", tests, nullptr, nullptr);
}
