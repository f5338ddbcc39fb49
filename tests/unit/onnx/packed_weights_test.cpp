// SPDX-License-Identifier: Apache-2.0
// Weights of 2 and 4 bits in files: networks compared with ONNX's reference evaluator, and what each opset and format
// holds.
#include <map>

#include "golden.hpp"
#include "onnx/messages.hpp"
#include "onnx/tensor_proto.hpp"
#include "ops/support.hpp"
#include "runtime/session.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

const std::string kFolder = QTN_GOLDEN_DIR "/quant/";

std::vector<nlohmann::json> cases(const std::string &file = "few_bits.json") {
  return read_json(kFolder + file).at("cases");
}

graph::Graph network(const nlohmann::json &c) { return onnx::load(kFolder + c.at("file").get<std::string>()); }

qdtype type_of(const nlohmann::json &c) { return c.at("name") == "int4" ? QTN_INT4 : QTN_INT2; }

/// By every engine, to the bit.
void expect_outputs(const std::string &what, const graph::Graph &g, const nlohmann::json &c) {
  const runtime::Session native(g, {}), reference(g, {runtime::Engine::reference, 1});
  for (const auto &run : c.at("runs")) {
    const Tensor x = tensor_of(run.at("x")), want = tensor_of(run.at("y"));
    const Tensor *inputs[] = {&x};
    for (const Tensor &got : {native.run(inputs)[0], reference.run(inputs)[0], graph::evaluate(g, std::span(&x, 1))[0]})
      if (float_values(got, "y") != float_values(want, "y")) fail_test(what, ": the outputs differ");
  }
}

std::map<std::string, Tensor> initializers(const std::string &bytes) {
  std::map<std::string, Tensor> tensors;
  const onnx::ModelProto model = onnx::read_model({bytes.data(), bytes.size()});
  for (const auto &view : onnx::read_graph(*model.graph).initializers) tensors.insert(onnx::read_tensor(view, ""));
  return tensors;
}

std::map<std::string, std::size_t> operators(const std::string &bytes) {
  std::map<std::string, std::size_t> counts;
  const onnx::ModelProto model = onnx::read_model({bytes.data(), bytes.size()});
  for (const onnx::NodeProto &node : onnx::read_graph(*model.graph).nodes) ++counts[node.op];
  return counts;
}

void expect_weights(const std::string &what, const Tensor &got, qdtype dtype, const nlohmann::json &want) {
  const auto integers = want.at("data").get<std::vector<std::int64_t>>();
  if (got.dtype() != dtype) fail_test(what, " is ", dtype_name(got.dtype()), ", not ", dtype_name(dtype));
  const std::size_t per_byte = 8 / dtype_bits(dtype);
  if (got.nbytes() != (integers.size() + per_byte - 1) / per_byte) fail_test(what, " takes ", got.nbytes(), " bytes");
  if (int_values(got, "weight") != integers) fail_test(what, ": other integers");
}

void reference_evaluator(void **) {
  for (const nlohmann::json &c : cases()) {
    const graph::Graph g = network(c);
    expect_outputs(c.at("name"), g, c);
    for (const auto &[name, want] : c.at("weights").items())
      expect_weights(name, named(g, name).constant, type_of(c), want);
  }
}

qdtype stored_type(qdtype dtype, int opset) {
  if (opset < 21) return QTN_INT8;
  return opset < 25 ? QTN_INT4 : dtype;
}

void files_hold_the_narrowest_type(void **) {
  for (const nlohmann::json &c : cases())
    for (const int opset : {13, 18, 20, 21, 24, 25}) {
      const std::string what = cat(c.at("name").get<std::string>(), ", opset ", opset);
      const std::string bytes = onnx::serialize(network(c), {opset});
      const std::map<std::string, Tensor> tensors = initializers(bytes);
      const qdtype dtype = stored_type(type_of(c), opset);
      for (const auto &[name, want] : c.at("weights").items()) {
        expect_weights(cat(what, ": ", name), tensors.at(name + "_quantized"), dtype, want);
        assert_int_equal(tensors.at(name + "_zero_point").dtype(), dtype);
      }
      const graph::Graph read = parse(bytes);
      expect_outputs(what, read, c);
      for (const auto &[name, want] : c.at("weights").items())
        assert_true(named(read, name).quantizer->scales() == named(network(c), name).quantizer->scales());
      assert_true(onnx::serialize(read, {opset}) == bytes);
    }
}

/// Operators on integers take bytes, one copy for all that read it; what stays between DequantizeLinear and
/// QuantizeLinear stays packed.
void operators_on_integers(void **) {
  for (const nlohmann::json &c : cases())
    for (const int opset : {13, 21, 25}) {
      const std::string what = cat(c.at("name").get<std::string>(), " as QOperator, opset ", opset);
      const std::string bytes = onnx::serialize(network(c), {opset, onnx::Format::qoperator});
      auto counts = operators(bytes);
      assert_int_equal(counts["QLinearConv"], 4);
      assert_int_equal(counts["QGemm"], 1);
      assert_int_equal(counts["MatMul"], 1);
      const std::map<std::string, Tensor> tensors = initializers(bytes);
      const char *in_bytes = opset < 21 ? "_quantized" : "_quantized_int8";
      for (const auto &[name, want] : c.at("weights").items())
        if (name == "w5")
          expect_weights(cat(what, ": ", name), tensors.at("w5_quantized"), stored_type(type_of(c), opset), want);
        else
          expect_weights(cat(what, ": ", name), tensors.at(name + in_bytes), QTN_INT8, want);
      assert_int_equal(tensors.count("w3_quantized") + tensors.count("w3_quantized_int8"), 1);
      const graph::Graph read = parse(bytes);
      expect_outputs(what, read, c);
      const std::string again = onnx::serialize(read, {opset, onnx::Format::qoperator});
      expect_outputs(what + ", written again", parse(again), c);
      assert_true(operators(again) == counts);
    }
}

/// Scales below zero and 0 cost no bits, in a graph and in its files.
void signed_blocks(void **) {
  for (const nlohmann::json &c : cases("signed_blocks.json")) {
    const std::string what = c.at("name");
    const graph::Graph g = network(c);
    expect_outputs(what, g, c);
    const auto weight = std::ranges::find_if(g.values, [](const graph::Value &v) { return v.constant.quantized(); });
    assert_true(weight != g.values.end() && weight->quantizer->per_block() == !what.ends_with("rows"));
    assert_int_equal(dtype_bits(weight->constant.dtype()), c.at("bits").get<unsigned>());
    const std::string bytes = onnx::serialize(g, {25});
    const graph::Graph read = parse(bytes);
    expect_outputs(what + ", written", read, c);
    assert_true(equal(named(read, weight->name).constant, weight->constant));
    assert_true(onnx::serialize(read, {25}) == bytes);
  }
}

/// Unsigned ones with zero points, and blocks, which no opset before 21 has.
void other_packed_constants(void **) {
  const auto with = [](qdtype dtype, std::int64_t block) {
    const qscheme scheme = block ? QTN_PER_BLOCK_AFFINE : QTN_PER_CHANNEL_AFFINE;
    const std::size_t count = block ? 4 : 2;
    const Tensor w = Tensor(dtype, {2, 3},
                            std::make_shared<Quantizer>(dtype, scheme, block ? 1 : 0, std::vector<double>(count, 0.5),
                                                        std::vector<std::int64_t>(count, 1), Numerics::onnx, block));
    for (std::int64_t i = 0; i < 6; ++i) w.packed().store(i, i % 4);
    graph::Graph g;
    graph::Value x, y;
    x.name = "x";
    x.dtype = y.dtype = QTN_FLOAT32;
    x.shape = Shape{1, 2};
    y.name = "y";
    g.inputs = {g.add_value(x)};
    g.outputs = {g.add_value(y)};
    const graph::ValueId weight = g.add_constant("w", w);
    g.nodes.push_back({"product", ops::find_op("MatMul"), {}, {g.inputs[0], weight}, {g.outputs[0]}, {}});
    return g;
  };
  const Tensor x = Tensor::from<float>(QTN_FLOAT32, {1, 2}, std::vector<float>{1, -2});
  for (const qdtype dtype : {QTN_UINT4, QTN_UINT2}) {
    const graph::Graph g = with(dtype, 0);
    for (const auto &[opset, stored] : {std::pair{20, QTN_UINT8}, {21, QTN_UINT4}, {25, dtype}}) {
      const std::string bytes = onnx::serialize(g, {opset});
      assert_int_equal(initializers(bytes).at("w_quantized").dtype(), stored);
      expect_same_bits(graph::evaluate(g, std::span(&x, 1)), graph::evaluate(parse(bytes), std::span(&x, 1)));
    }
    const graph::Graph blocks = with(dtype, 2);
    assert_int_equal(initializers(onnx::serialize(blocks, {21})).at("w_quantized").dtype(), QTN_UINT4);
    expect_error(QTN_EUNSUPPORTED, {"opset 20", "block_size"}, [&] { onnx::serialize(blocks, {20}); });
  }
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::reference_evaluator),
      cmocka_unit_test(qtn::files_hold_the_narrowest_type),
      cmocka_unit_test(qtn::operators_on_integers),
      cmocka_unit_test(qtn::signed_blocks),
      cmocka_unit_test(qtn::other_packed_constants),
  };
  return cmocka_run_group_tests_name("packed_weights", tests, nullptr, nullptr);
}
