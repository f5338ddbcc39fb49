// SPDX-License-Identifier: Apache-2.0
// Sequences of which a run says how many items there are, joined into one tensor: what the golden files of composed_test.cpp
// do not hold.
#include "onnx/support.hpp"

namespace qtn::test {
namespace {

namespace f = onnx::field;

std::string graph_attribute(const std::string &name, const std::vector<std::string> &items) {
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::attribute::name, name);
    attribute.add_int32(f::attribute::type, static_cast<std::int32_t>(onnx::AttributeType::g));
    pbf_writer graph(attribute, f::attribute::g);
    {
      pbf_writer node(graph, f::graph::node);
      for (const std::string &item : items) node.add_string(f::node::input, item);
      node.add_string(f::node::output, name + "_s");
      node.add_string(f::node::op_type, "SequenceConstruct");
    }
    graph.add_string(f::graph::name, name);
    pbf_writer(graph, f::graph::output).add_string(f::value_info::name, name + "_s");
  });
}

/// Items of these shapes, or the last one alone where x has no sum, joined.
graph::Graph join(const std::vector<std::vector<std::int64_t>> &shapes, std::int64_t axis, bool new_axis) {
  ModelText model;
  std::vector<std::string> items;
  for (const auto &shape : shapes) {
    std::int64_t count = 1;
    for (const std::int64_t dim : shape) count *= dim;
    items.push_back("item" + std::to_string(items.size()));
    model.initializers.push_back(
        float_tensor(items.back(), shape, std::vector<float>(static_cast<std::size_t>(count))));
  }
  model.nodes = {
      {"ReduceSum", {"x"}, {"sum"}, "", "", {int_attribute("keepdims", 0)}},
      {"Cast", {"sum"}, {"which"}, "", "", {int_attribute("to", QTN_BOOL)}},
      {"If",
       {"which"},
       {"s"},
       "",
       "",
       {graph_attribute("then_branch", items), graph_attribute("else_branch", {items.back()})}},
      {"ConcatFromSequence", {"s"}, {"y"}, "", "", {int_attribute("axis", axis), int_attribute("new_axis", new_axis)}}};
  return parse(model.bytes());
}

Tensor run(const graph::Graph &g) {
  const Tensor x = Tensor::from<float>(QTN_FLOAT32, {1, 2}, std::vector<float>{1, 2});
  return graph::evaluate(g, std::span(&x, 1))[0];
}

/// A Concat for each item would copy the ones before it again.
void no_loop_joins_items(void **) {
  for (const std::int64_t axis : {0, 1, -1, -2}) {
    const graph::Graph g = join({{2, 3}, {2, 3}, {2, 3}}, axis, false);
    assert_int_equal(std::ranges::count(op_names(g), "Loop"), 0);
    const bool rows = axis == 0 || axis == -2;
    assert_true(run(g).shape() == (rows ? Shape{6, 3} : Shape{2, 9}));
  }
}

/// Also where there are as many elements as if they fitted.
void items_that_do_not_fit(void **) {
  const auto refuse = [](const std::vector<std::vector<std::int64_t>> &shapes, std::int64_t axis, bool new_axis) {
    const graph::Graph g = join(shapes, axis, new_axis);
    expect_error(QTN_ESHAPE, "Reshape: x ", [&] { run(g); });
  };
  refuse({{2, 3}, {2, 4}}, 0, false);
  refuse({{2, 3}, {1, 3}}, -1, false);
  refuse({{2, 2}, {2, 1}, {2, 3}}, 0, false);
  refuse({{2, 1, 3}, {1, 1, 6}, {3, 1, 2}}, 1, false);
  for (const std::int64_t axis : {0, -1}) {
    refuse({{2}, {2, 1}}, axis, false);
    refuse({{2}, {2, 1}}, axis, true);
  }
  refuse({{2, 2}, {2, 1}, {2, 3}}, 0, true);
  expect_error(QTN_EINVAL, "Gather: index 2 is outside", [] { run(join({{2, 3}, {2, 3}}, 2, false)); });
  expect_error(QTN_EINVAL, "Gather: index -3 is outside", [] { run(join({{2, 3}, {2, 3}}, -3, false)); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(no_loop_joins_items),
      cmocka_unit_test(items_that_do_not_fit),
  };
  return cmocka_run_group_tests_name("onnx/packed_sequences", tests, nullptr, nullptr);
}
