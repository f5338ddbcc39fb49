// SPDX-License-Identifier: Apache-2.0
// Networks whose nodes take integers: both engines against ONNX Runtime, to the bit.
#include "onnx/onnx.hpp"
#include "onnx/qdq.hpp"
#include "ops/common/requantization.hpp"
#include "ops/support.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

constexpr runtime::Engine kEngines[] = {runtime::Engine::reference, runtime::Engine::native};

std::vector<Tensor> run_session(const graph::Graph &g, runtime::Engine engine, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  return runtime::Session(g, {engine, 1}).run(inputs);
}

/// Every layer's integers and the float result are outputs of the file.
void expect_onnx_runtime(const graph::Graph &g, const nlohmann::json &file) {
  for (const auto &c : file.at("cases"))
    for (const runtime::Engine engine : kEngines) {
      const std::vector<Tensor> got = run_session(g, engine, tensor_of(c.at("x")));
      std::size_t o = 0;
      for (const auto &name : file.at("outputs"))
        expect_equal(got[o++], tensor_of(c.at("outputs").at(name.get<std::string>())), 0, name.get<std::string>());
    }
}

void network_of_onnx_runtime(void **) {
  const std::string folder = QTN_GOLDEN_DIR "/quant/";
  const nlohmann::json file = read_json(folder + "qoperator.json");
  assert_true(file.at("cases").size() > 1 && file.at("outputs").size() > 10);
  const graph::Graph g = onnx::load(folder + "qoperator.onnx");
  expect_onnx_runtime(g, file);
  const std::string bytes = onnx::serialize(g, {});
  expect_onnx_runtime(onnx::parse(std::as_bytes(std::span(bytes)), ""), file);
}

void expect_all_in_integers(const graph::Graph &g, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  const auto profile = nlohmann::json::parse(runtime::Session(g, {runtime::Engine::native, 1}).profile(inputs));
  for (const auto &node : profile["nodes"])
    if (node["dtype"] != "int8" || node["kernel"] == "definition") fail_test("not in integers: ", node.dump());
}

// Without readers of the integers, nothing but ordinary operators on integers is left of it.
void network_without_other_outputs(void **) {
  const std::string folder = QTN_GOLDEN_DIR "/quant/";
  nlohmann::json file = read_json(folder + "qoperator.json");
  file["outputs"] = {file.at("outputs")[0]};
  const graph::Graph g = onnx::load(folder + "qoperator_alone.onnx");
  for (const graph::Node &node : g.nodes)
    if (std::string_view(node.op->name).starts_with("Q")) fail_test(node.name, " is ", node.op->name);
  expect_onnx_runtime(g, file);
  expect_all_in_integers(g, tensor_of(file.at("cases")[0].at("x")));
}

// Where a file begins and ends with integers, so do runs; what is saved has no more nodes for it.
void network_between_integers(void **) {
  const std::string folder = QTN_GOLDEN_DIR "/quant/";
  const nlohmann::json golden = read_json(folder + "qoperator_edges.json");
  for (const nlohmann::json &file : golden.at("files")) {
    const graph::Graph g = onnx::load(folder + file.at("file").get<std::string>());
    expect_onnx_runtime(g, file);
    expect_all_in_integers(g, tensor_of(file.at("cases")[0].at("x")));
    for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
      const std::string bytes = onnx::serialize(g, {.format = format});
      expect_onnx_runtime(onnx::parse(std::as_bytes(std::span(bytes)), ""), file);
    }
    const graph::Graph written = onnx::export_qdq(g);
    const graph::Uses uses(written);
    for (const graph::Node &node : written.nodes) {
      const std::int32_t maker = uses.producer[static_cast<std::size_t>(node.inputs[0])];
      const bool returns = node.op == &ops::kQuantizeLinear && maker >= 0 &&
                           written.nodes[static_cast<std::size_t>(maker)].op == &ops::kDequantizeLinear;
      if (returns) fail_test(node.name, " makes integers of what was integers");
    }
  }
}

// The value between is on a grid of its own, which the nodes on integers around it do not see.
void integers_beside_quantized_values(void **) {
  GraphBuilder b;
  b.input("x", {2, 6})
      .constant("s", Tensor::scalar(0.04f))
      .constant("w", quantize(GraphBuilder::ramp({6, 3}), per_tensor(QTN_INT8, 0.01, 4)).with_quantizer(nullptr));
  b.constant("sw", Tensor::scalar(0.01f))
      .constant("zw", quantize(Tensor::scalar(0), per_tensor(QTN_INT8, 1, 4)).with_quantizer(nullptr));
  b.node("Relu", "relu", {"x"}, {"r"});
  b.node("DynamicQuantizeLinear", "dynamic", {"r"}, {"q", "sq", "zq"});
  b.node("MatMulInteger", "product", {"q", "w", "zq", "zw"}, {"sums"});
  b.node("Cast", "real", {"sums"}, {"f"}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}));
  b.node("Mul", "scale", {"sq", "sw"}, {"unit"});
  b.node("Mul", "scaled", {"f", "unit"}, {"p"});
  b.node("QuantizeLinear", "quantize", {"p", "s"}, {"y"});
  graph::Graph g = b.build({"y", "sums", "p"});
  for (graph::Value &value : g.values)
    if (value.name == "r" || value.name == "f")
      value.quantizer = per_tensor(QTN_UINT8, value.name == "r" ? 0.02 : 150, 7);
  const Tensor x = GraphBuilder::ramp({2, 6});
  const std::vector<Tensor> want = run_session(g, kEngines[0], x), got = run_session(g, kEngines[1], x);
  assert_int_equal(want[0].dtype(), QTN_UINT8);
  assert_int_equal(want[1].dtype(), QTN_INT32);
  for (std::size_t o = 0; o < want.size(); ++o) expect_equal(got[o], want[o], 0, cat("output ", o));
}

/// Integers of a table, moved twice before they are multiplied: in the file nodes on integers, which come back as
/// values on the table's grid, so that the product stays one of integers.
void moved_tables(void **) {
  const QuantizerPtr grid = per_tensor(QTN_UINT8, 0x1p-6, 120), sums = per_tensor(QTN_UINT8, 0x1p-4, 128);
  GraphBuilder b;
  b.input("ids", {-1, 3})
      .constant("table", quantize(GraphBuilder::ramp({10, 4}), grid))
      .constant("shape", ints({-1, 4}))
      .constant("w", quantize(GraphBuilder::ramp({4, 5}), per_tensor(QTN_INT8, 0.01, 0)));
  b.node("Gather", "look", {"table", "ids"}, {"rows"}).node("Reshape", "lay", {"rows", "shape"}, {"flat"});
  b.node("MatMul", "product", {"flat", "w"}, {"y"});
  graph::Graph g = b.build({"y"});
  g.value(g.inputs[0]).dtype = QTN_INT64;
  for (graph::Value &value : g.values) {
    if (value.name == "table" || value.name == "rows" || value.name == "flat") value.quantizer = grid;
    if (value.name == "w") value.quantizer = value.constant.quantizer();
    if (value.name == "y") value.quantizer = sums;
  }
  const std::string bytes = onnx::serialize(g, {.format = onnx::Format::qoperator});
  const graph::Graph back = onnx::parse(std::as_bytes(std::span(bytes)), "");
  for (const graph::Node &node : back.nodes) {
    if (node.op == &ops::kDequantizeLinear) fail_test("integers come back as floats: ", node.name);
    if (std::string_view(node.op->name) == "Gather") {
      assert_true(back.value(node.inputs[0]).quantizer && *back.value(node.inputs[0]).quantizer == *grid);
      assert_true(back.value(node.outputs[0]).quantizer && *back.value(node.outputs[0]).quantizer == *grid);
    }
  }
  const Tensor ids = ints({0, 9, 4, 4, 1, 7}).reshaped({2, 3});
  for (const runtime::Engine engine : kEngines)
    expect_equal(run_session(back, engine, ids)[0], run_session(g, engine, ids)[0], 0, "a table that is moved");
  const Tensor *inputs[] = {&ids};
  const auto profile = nlohmann::json::parse(runtime::Session(back, {runtime::Engine::native, 1}).profile(inputs));
  for (const auto &node : profile["nodes"])
    if (node["op"] == "MatMul" && node["dtype"] != "int8") fail_test("not in integers: ", node.dump());
}

/// A sum with one integer is a table, whose entries are sums of integers as those with many.
void one_integer_beside_many(void **) {
  const QuantizerPtr grid = per_tensor(QTN_UINT8, 0.00390625, 59), other = per_tensor(QTN_UINT8, 0.04296875, 156),
                     sums = per_tensor(QTN_UINT8, 0.0546875, 227);
  const Tensor x = dequantize(ops::all_bytes(grid));
  std::vector<Tensor> results;
  for (const Shape &shape : {Shape{}, Shape{256}}) {
    const Tensor integers(QTN_UINT8, shape, other);
    std::fill_n(integers.as<std::uint8_t>(), integers.count(), std::uint8_t{125});
    graph::Graph g =
        GraphBuilder().input("x", {256}).constant("c", integers).node("Add", "sum", {"x", "c"}, {"y"}).build({"y"});
    for (graph::Value &value : g.values) value.quantizer = value.name == "x" ? grid : value.name == "c" ? other : sums;
    for (const runtime::Engine engine : kEngines) results.push_back(run_session(g, engine, x)[0]);
  }
  for (const Tensor &result : results) expect_equal(result, results[0], 0, "a sum");
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::network_of_onnx_runtime),
      cmocka_unit_test(qtn::test::network_without_other_outputs),
      cmocka_unit_test(qtn::test::network_between_integers),
      cmocka_unit_test(qtn::test::integers_beside_quantized_values),
      cmocka_unit_test(qtn::test::moved_tables),
      cmocka_unit_test(qtn::test::one_integer_beside_many),
  };
  return cmocka_run_group_tests_name("runtime/qoperator", tests, nullptr, nullptr);
}
