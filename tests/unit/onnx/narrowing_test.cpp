// SPDX-License-Identifier: Apache-2.0
// What reading makes of constants in other floats than float32: no more of them than a file has.
#include "base/limits.hpp"
#include "onnx/support.hpp"

namespace qtn::test {
namespace {

namespace f = onnx::field;

constexpr std::int64_t kSide = 64;

std::string zeros(const std::string &name, qdtype dtype) {
  return raw_tensor(name, dtype, {kSide, kSide}, std::vector<char>(kSide * kSide * dtype_size(dtype)));
}

/// An If that makes `output` of x and w, of which the graphs around it know, in both branches.
NodeText branches(const std::string &output, int depth);

std::string branch(const std::string &name, const std::string &output, int depth) {
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::attribute::name, name);
    attribute.add_int32(f::attribute::type, static_cast<std::int32_t>(onnx::AttributeType::g));
    pbf_writer graph(attribute, f::attribute::g);
    const NodeText inside =
        depth > 0 ? branches(output + "_" + name, depth - 1) : NodeText{"MatMul", {"x", "w"}, {output + "_" + name}};
    {
      pbf_writer node(graph, f::graph::node);
      for (const std::string &input : inside.inputs) node.add_string(f::node::input, input);
      node.add_string(f::node::output, inside.outputs[0]);
      node.add_string(f::node::op_type, inside.op);
      for (const std::string &inner : inside.attributes) node.add_message(f::node::attribute, inner);
    }
    graph.add_string(f::graph::name, name);
    pbf_writer(graph, f::graph::output).add_string(f::value_info::name, inside.outputs[0]);
  });
}

NodeText branches(const std::string &output, int depth) {
  return {"If", {"which"}, {output},
          "",   "",        {branch("then_branch", output, depth), branch("else_branch", output, depth)}};
}

/// The weights of every graph, one inside of the other.
void collect(const graph::Graph &g, std::vector<Tensor> &weights) {
  for (const graph::Value &value : g.values)
    if (value.is_constant() && value.constant.count() == kSide * kSide) weights.push_back(value.constant);
  for (const graph::Node &node : g.nodes)
    for (const auto &body : node.bodies) collect(*body, weights);
}

void bodies_read_one_tensor(void **) {
  for (const qdtype dtype : {QTN_FLOAT64, QTN_FLOAT16, QTN_BFLOAT16}) {
    ModelText model;
    model.nodes = {{"MatMul", {"x", "w"}, {"y"}}, branches("z", 0), branches("nested", 1)};
    model.initializers = {zeros("w", dtype), raw_tensor("which", QTN_BOOL, {}, std::vector<char>{1})};
    model.outputs = {"y", "z", "nested"};
    model.shape = {3, kSide};
    model.input_type = model.output_type = dtype;
    std::vector<Tensor> weights;
    collect(parse(model.bytes()), weights);
    assert_true(weights.size() >= 7);
    for (const Tensor &w : weights) {
      assert_int_equal(w.dtype(), QTN_FLOAT32);
      if (!w.owns_same_storage(weights[0])) fail_test(dtype_name(dtype), " weights are there more than once");
    }
  }
}

/// What is no bound is refused before anything is made of it.
void long_bounds_are_not_converted(void **) {
  ModelText model;
  model.nodes = {{"Clip", {"x", "low"}, {"a"}, "first"}, {"Clip", {"a", "low"}, {"y"}, "second"}};
  model.initializers = {zeros("low", QTN_FLOAT32)};
  model.input_type = model.output_type = QTN_FLOAT16;
  set_limit(Limit::load_bytes, kSide * kSide * 4 + 1000);  // that constant and little else
  expect_error(QTN_ESHAPE, "node \"first\": Clip: a bound must be one number, it is 64x64",
               [&] { parse(model.bytes()); });
  set_limit(Limit::load_bytes, 0);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(bodies_read_one_tensor),
      cmocka_unit_test(long_bounds_are_not_converted),
  };
  return cmocka_run_group_tests_name("onnx/narrowing", tests, nullptr, nullptr);
}
