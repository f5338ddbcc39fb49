// SPDX-License-Identifier: Apache-2.0
// Shapes that are computed from shapes are known before a run, also where a Clip or a Relu is part of a node.
#include "graph/evaluate.hpp"
#include "graph/pipelines.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

Tensor integer(std::int64_t value) { return Tensor::from_ints(std::span(&value, 1)); }

/// Pads a row of x to 8 columns, as the exporters of "same" padding write it: by max(8 - columns, 0).
graph::Graph padded_row(const std::string &bound) {
  GraphBuilder b;
  b.input("x", {1, 5}).constant("one", integer(1)).constant("zeros", Tensor::from_ints(std::vector<std::int64_t>(3)));
  b.constant("wanted", Tensor::scalar(8.0f)).constant("lo", Tensor::scalar(0.0f));
  b.node("Shape", "shape", {"x"}, {"dims"}).node("Gather", "gather", {"dims", "one"}, {"columns"});
  b.node("Cast", "real", {"columns"}, {"real_columns"}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}));
  b.node("Sub", "missing", {"wanted", "real_columns"}, {"difference"});
  std::vector<std::string> operands{"difference"};
  if (bound == "Clip") operands.push_back("lo");
  b.node(bound, "bound", operands, {"amount"});
  b.node("Cast", "whole", {"amount"}, {"after"}, attrs({{"to", std::int64_t{QTN_INT64}}}));
  b.node("Concat", "pads", {"zeros", "after"}, {"amounts"}, attrs({{"axis", std::int64_t{0}}}));
  b.node("Pad", "pad", {"x", "amounts"}, {"y"});
  return b.build({"y"});
}

void test_clamped_arithmetic(void **) {
  for (const char *bound : {"Clip", "Relu"}) {
    graph::Graph g = padded_row(bound);
    graph::run_passes(g, graph::Pipeline::execution);
    const auto fused = [](const graph::Node &node) { return node.clamp.has_value(); };
    assert_true(std::any_of(g.nodes.begin(), g.nodes.end(), fused));
    for (const auto &[columns, wanted] : {std::pair<std::int64_t, std::int64_t>{5, 8}, {8, 8}, {11, 11}}) {
      const std::vector<ops::TensorType> x{{QTN_FLOAT32, {1, columns}}};
      const graph::Inferred known = graph::infer(g, x);
      assert_true(known.types[static_cast<std::size_t>(g.outputs[0])].shape == Shape({1, wanted}));
    }
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::test_clamped_arithmetic)};
  return cmocka_run_group_tests_name("unit/graph/infer", tests, nullptr, nullptr);
}
