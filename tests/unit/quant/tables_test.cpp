// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes that are one function of one activation: only its operand and its result have grids, and sessions
// look it up in one table, with the bits of the nodes run one by one.
#include "graph/tables.hpp"

#include "graph/evaluate.hpp"
#include "graph/inspect.hpp"
#include "graph_builder.hpp"
#include "onnx/onnx.hpp"
#include "quant/calibrate.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

const Shape kImage{1, 4, 6, 6};

Tensor image(int seed) {
  Tensor x = GraphBuilder::ramp(kImage);
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] *= 1.0f + 0.25f * static_cast<float>((i + seed) % 7);
  return x;
}

/// A function of u, behind one convolution and in front of another.
class Between {
 public:
  Between() { b_.input("x", kImage).conv("a", "x", "u", 4, 4); }
  Between &number(const std::string &name, float v, const Shape &shape = {}) {
    b_.constant(name, Tensor::scalar(v).reshaped(shape));
    return *this;
  }
  Between &node(const char *op, const std::string &name, const std::vector<std::string> &inputs, const Attrs &a = {}) {
    b_.node(op, name, inputs, {name}, a);
    return *this;
  }
  graph::Graph build(const std::string &last, std::vector<std::string> outputs = {}) {
    outputs.insert(outputs.begin(), "y");
    return b_.conv("b", last, "y", 4, 4).build(outputs);
  }

 private:
  GraphBuilder b_;
};

graph::Graph quantized(const graph::Graph &g, const Config &config, Names grids) {
  PreparedModel p = prepare(g, config);
  expect_names(quantized_values(p), grids);
  for (int seed = 0; seed < 4; ++seed) {
    const Tensor x = image(seed);
    const Tensor *inputs[] = {&x};
    calibrate(p, inputs);
  }
  return convert(p, nullptr);
}

/// Both engines, also on what was saved and read again, give the same bits.
void expect_one_result(const graph::Graph &g, std::size_t in_float) {
  const graph::NodeCounts counts = graph::count_nodes(g);
  assert_int_equal(counts.all - counts.integer, in_float);
  const std::string file = onnx::serialize(g, {.format = onnx::Format::qdq});
  for (const graph::Graph &model : {g, onnx::parse(std::as_bytes(std::span(file)), "")}) {
    const runtime::Session session(model, {});
    for (int seed = 4; seed < 8; ++seed) {
      const Tensor x = image(seed);
      const Tensor *inputs[] = {&x};
      const std::vector<float> native = float_values(session.run(inputs)[0], "y");
      assert_true(native == float_values(graph::evaluate(model, std::span(&x, 1))[0], "y"));
    }
  }
}

void chains(void **) {
  const auto chain = [] {
    return Between()
        .number("two", 2)
        .number("third", 0.3f, {1, 1})
        .node("Tanh", "t", {"u"})
        .node("Mul", "m", {"two", "t"})
        .node("Sub", "s", {"m", "third"})
        .node("Abs", "v", {"s"})
        .build("v");
  };
  expect_one_result(quantized(chain(), Config("onnx"), {"x", "u", "v"}), 0);
  // PyTorch quantizes one operator after the other.
  expect_one_result(quantized(chain(), Config("fbgemm"), {"x", "u", "t", "m", "s", "v"}), 0);
}

void around_one_value(void **) {
  const graph::Graph g = Between()
                             .number("half", 0.5f)
                             .node("Softsign", "s", {"u"})
                             .node("Mul", "m", {"u", "s"})
                             .node("Add", "v", {"m", "half"})
                             .build("v");
  expect_one_result(quantized(g, Config("onnx"), {"x", "u", "v"}), 0);
}

void clamps_inside(void **) {
  const graph::Graph g = Between()
                             .number("one", 1)
                             .number("low", -0.5f)
                             .number("high", 1.25f)
                             .node("Tanh", "t", {"u"})
                             .node("Add", "s", {"t", "one"})
                             .node("Clip", "c", {"s", "low", "high"})
                             .node("Mul", "v", {"c", "c"})
                             .build("v");
  expect_one_result(quantized(g, Config("onnx"), {"x", "u", "v"}), 0);

  // As TensorFlow writes HardSwish.
  const graph::Graph bounded = Between()
                                   .number("fifth", 0.2f)
                                   .number("half", 0.5f, {1, 1, 1, 1})
                                   .number("low", 0, {1, 1, 1, 1})
                                   .number("high", 1)
                                   .node("Mul", "m", {"u", "fifth"})
                                   .node("Add", "s", {"m", "half"})
                                   .node("Max", "c", {"s", "low"})
                                   .node("Min", "d", {"high", "c"})
                                   .node("Mul", "v", {"u", "d"})
                                   .build("v");
  expect_one_result(quantized(bounded, Config("onnx"), {"x", "u", "v"}), 0);
}

/// What others read, two values, constants of several numbers and rules for a node or a tensor end a table.
void what_is_apart(void **) {
  const auto of = [](const std::vector<std::string> &outputs) {
    return Between().node("Tanh", "t", {"u"}).node("Abs", "s", {"t"}).node("Exp", "v", {"s"}).build("v", outputs);
  };
  quantized(of({}), Config("onnx"), {"x", "u", "v"});
  quantized(of({"t"}), Config("onnx"), {"x", "u", "t", "v"});
  Config by_node("onnx"), by_tensor("onnx");
  Attrs minmax;
  minmax.set("observer", "minmax");
  by_node.set("node:s", &minmax);
  by_tensor.set("tensor:t", &minmax);
  quantized(of({}), by_node, {"x", "u", "s", "v"});
  quantized(of({}), by_tensor, {"x", "u", "t", "v"});

  GraphBuilder b;
  b.input("x", kImage).conv("a", "x", "u", 4, 4).conv("c", "x", "w", 4, 4);
  b.node("Tanh", "tu", {"u"}, {"t"}).node("Tanh", "tw", {"w"}, {"s"}).node("Add", "sum", {"t", "s"}, {"v"});
  const graph::Graph two = b.conv("b", "v", "y", 4, 4).build({"y"});
  quantized(two, Config("onnx"), {"x", "u", "w", "t", "s", "v"});
}

/// A thousand behind one another are looked for in time that grows with their number.
void long_chains(void **) {
  Between b;
  std::string last = "u";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "t" + std::to_string(i);
    b.node("Softsign", name, {last});
    last = name;
  }
  const graph::Graph g = b.build(last);
  PreparedModel p = prepare(g, Config("onnx"));
  assert_true(quantized_values(p).size() < 100);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(chains),        cmocka_unit_test(around_one_value), cmocka_unit_test(clamps_inside),
      cmocka_unit_test(what_is_apart), cmocka_unit_test(long_chains),
  };
  return cmocka_run_group_tests_name("tables", tests, nullptr, nullptr);
}
