// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear in, quantizers of values out.
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

const std::vector<std::string> kParameters{
    float_tensor("s", {}, {0.5f}),       raw_tensor<std::uint8_t>("z", QTN_UINT8, {}, {3}),
    float_tensor("s2", {}, {0.25f}),     raw_tensor<std::uint8_t>("z2", QTN_UINT8, {}, {7}),
    float_tensor("s_again", {}, {0.5f}), raw_tensor<std::uint8_t>("z_again", QTN_UINT8, {}, {3})};

NodeText q(const std::string &x, const std::string &y, const std::string &set = "") {
  return {"QuantizeLinear", {x, "s" + set, "z" + set}, {y}, "q_" + y};
}
NodeText dq(const std::string &x, const std::string &y, const std::string &set = "") {
  return {"DequantizeLinear", {x, "s" + set, "z" + set}, {y}, "dq_" + y};
}

ModelText model(std::vector<NodeText> nodes, std::vector<std::string> outputs = {"y"}) {
  return {.nodes = std::move(nodes), .initializers = kParameters, .outputs = std::move(outputs)};
}

using Ops = std::vector<std::string>;

void expect_quantizer(const graph::Value &value, float scale, std::int64_t zero) {
  if (!value.quantizer) fail_test("\"", value.name, "\" has no quantizer");
  assert_int_equal(value.quantizer->dtype(), QTN_UINT8);
  assert_true(value.quantizer->scale() == scale);
  assert_int_equal(value.quantizer->zero_point(), zero);
  assert_true(value.quantizer->numerics() == Numerics::onnx);
}

void input_and_activation(void **) {
  const graph::Graph g = parse(model({q("x", "xq"),
                                      dq("xq", "xd"),
                                      {"Relu", {"xd"}, {"r"}},
                                      q("r", "rq", "2"),
                                      dq("rq", "rd", "2"),
                                      {"Tanh", {"rd"}, {"y"}}})
                                   .bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Tanh"}));
  expect_quantizer(g.value(g.inputs[0]), 0.5f, 3);
  expect_quantizer(named(g, "r"), 0.25f, 7);
  assert_true(!named(g, "y").quantizer);
  assert_int_equal(g.nodes[1].inputs[0], g.nodes[0].outputs[0]);
}

void one_quantize_many_dequantize(void **) {
  const graph::Graph g = parse(
      model({{"Relu", {"x"}, {"r"}}, q("r", "rq"), dq("rq", "a"), dq("rq", "b", "_again"), {"Add", {"a", "b"}, {"y"}}})
          .bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Add"}));
  expect_quantizer(named(g, "r"), 0.5f, 3);
  assert_int_equal(g.nodes[1].inputs[0], g.nodes[1].inputs[1]);
}

void one_pair_for_each_reader(void **) {
  const graph::Graph g = parse(model({{"Relu", {"x"}, {"r"}},
                                      q("r", "q1"),
                                      dq("q1", "a"),
                                      q("r", "q2", "_again"),
                                      dq("q2", "b", "_again"),
                                      {"Add", {"a", "b"}, {"y"}}})
                                   .bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Add"}));
  expect_quantizer(named(g, "r"), 0.5f, 3);
}

void other_readers_see_the_float(void **) {
  const graph::Graph g =
      parse(model({{"Relu", {"x"}, {"r"}}, q("r", "rq"), dq("rq", "d"), {"Add", {"d", "r"}, {"y"}}}).bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Identity", "Add"}));
  assert_true(!named(g, "r").quantizer);
  expect_quantizer(named(g, "d"), 0.5f, 3);
  assert_string_equal(g.value(g.nodes[2].inputs[0]).name.c_str(), "d");
  assert_string_equal(g.value(g.nodes[2].inputs[1]).name.c_str(), "r");
}

void output_that_is_read_quantized(void **) {
  const graph::Graph g =
      parse(model({{"Relu", {"x"}, {"r"}}, q("r", "rq"), dq("rq", "d"), {"Tanh", {"d"}, {"y"}}}, {"r", "y"}).bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Identity", "Tanh"}));
  assert_true(!g.value(g.outputs[0]).quantizer);
  assert_string_equal(g.value(g.outputs[0]).name.c_str(), "r");
}

void two_grids_for_one_value(void **) {
  const graph::Graph g = parse(model({{"Relu", {"x"}, {"r"}},
                                      q("r", "q1"),
                                      dq("q1", "a"),
                                      q("r", "q2", "2"),
                                      dq("q2", "b", "2"),
                                      {"Add", {"a", "b"}, {"y"}}})
                                   .bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Identity", "Identity", "Add"}));
  expect_quantizer(named(g, "a"), 0.5f, 3);
  expect_quantizer(named(g, "b"), 0.25f, 7);
}

void pairs_in_a_row(void **) {
  const graph::Graph same =
      parse(model({q("x", "q1"), dq("q1", "a"), q("a", "q2"), dq("q2", "b"), {"Relu", {"b"}, {"y"}}}).bytes());
  assert_true(op_names(same) == (Ops{"Relu"}));
  const graph::Graph other = parse(
      model({q("x", "q1"), dq("q1", "a"), q("a", "q2", "2"), dq("q2", "b", "2"), {"Relu", {"b"}, {"y"}}}).bytes());
  assert_true(op_names(other) == (Ops{"Identity", "Relu"}));
  expect_quantizer(other.value(other.inputs[0]), 0.5f, 3);
  expect_quantizer(named(other, "b"), 0.25f, 7);
}

void outputs_keep_their_names(void **) {
  const graph::Graph one = parse(model({{"Relu", {"x"}, {"r"}}, q("r", "rq"), dq("rq", "y")}).bytes());
  assert_true(op_names(one) == (Ops{"Relu"}));
  assert_string_equal(one.value(one.outputs[0]).name.c_str(), "y");
  expect_quantizer(one.value(one.outputs[0]), 0.5f, 3);

  const graph::Graph two = parse(
      model({{"Relu", {"x"}, {"r"}}, q("r", "rq"), dq("rq", "a"), dq("rq", "y"), dq("rq", "z_out")}, {"y", "z_out"})
          .bytes());
  assert_true(op_names(two) == (Ops{"Relu", "Identity"}));
  assert_string_equal(two.value(two.outputs[0]).name.c_str(), "y");
  assert_string_equal(two.value(two.outputs[1]).name.c_str(), "z_out");
  expect_quantizer(two.value(two.outputs[1]), 0.5f, 3);

  const graph::Graph input = parse(model({q("x", "xq"), dq("xq", "y")}).bytes());
  assert_true(op_names(input) == (Ops{"Identity"}));
  assert_string_equal(input.value(input.inputs[0]).name.c_str(), "x");
  assert_string_equal(input.value(input.outputs[0]).name.c_str(), "y");
}

void expect_constants(std::int64_t axis_of_bias) {
  ModelText text = model({{"DequantizeLinear", {"wq", "ws", "wz"}, {"w"}, "", "", {int_attribute("axis", -2)}},
                          {"DequantizeLinear", {"bq", "bs"}, {"b"}, "", "", {int_attribute("axis", axis_of_bias)}},
                          {"Gemm", {"x", "w", "b"}, {"g"}, "", "", {int_attribute("transB", 1)}},
                          q("f", "fq"),
                          dq("fq", "fd"),
                          {"Add", {"g", "fd"}, {"y"}}});
  for (const std::string &tensor :
       {raw_tensor<std::int8_t>("wq", QTN_INT8, {2, 2}, {1, -2, 3, 127}), float_tensor("ws", {2}, {0.5f, 0.25f}),
        raw_tensor<std::int8_t>("wz", QTN_INT8, {2}, {0, 0}), raw_tensor<std::int32_t>("bq", QTN_INT32, {2}, {100, -5}),
        float_tensor("bs", {2}, {0.125f, 0.0625f}), float_tensor("f", {2}, {1.2f, 100000.0f})})
    text.initializers.push_back(tensor);
  const graph::Graph g = parse(text.bytes());
  assert_true(op_names(g) == (Ops{"Gemm", "Add"}));

  const graph::Value &w = named(g, "w");
  assert_true(w.is_constant() && w.quantizer && w.constant.quantizer() == w.quantizer);
  assert_int_equal(w.constant.dtype(), QTN_INT8);
  assert_int_equal(w.quantizer->scheme(), QTN_PER_CHANNEL_SYMMETRIC);
  assert_int_equal(w.quantizer->axis(), 0);
  assert_true(w.dtype == QTN_FLOAT32);
  const graph::Value &b = named(g, "b");
  assert_int_equal(b.constant.dtype(), QTN_INT32);
  assert_int_equal(b.quantizer->scheme(), QTN_PER_CHANNEL_SYMMETRIC);
  assert_int_equal(b.quantizer->axis(), 0);
  const graph::Value &f = named(g, "fd");
  expect_quantizer(f, 0.5f, 3);
  // 1.2 / 0.5 = 2.4 rounds to 2; the other saturates.
  assert_true(int_values(f.constant.with_quantizer(nullptr), "f") == (std::vector<std::int64_t>{5, 255}));
}

void constants(void **) {
  expect_constants(0);
  expect_constants(1);  // that of the columns which a bias is added to
}

void shared_scales_behind_identity(void **) {
  const graph::Graph g = parse(model({{"Identity", {"s"}, {"si"}},
                                      {"Identity", {"z"}, {"zi"}},
                                      {"QuantizeLinear", {"x", "si", "zi"}, {"xq"}},
                                      {"DequantizeLinear", {"xq", "si", "zi"}, {"xd"}},
                                      {"Relu", {"xd"}, {"y"}}})
                                   .bytes());
  assert_true(op_names(g) == (Ops{"Relu"}));
  expect_quantizer(g.value(g.inputs[0]), 0.5f, 3);
}

void numerics_from_metadata(void **) {
  ModelText text = model({q("x", "xq"), dq("xq", "xd"), {"Relu", {"xd"}, {"y"}}});
  text.metadata = {{"qtensor.numerics", "fbgemm"}, {"other", "value"}};
  const graph::Graph g = parse(text.bytes());
  assert_true(g.value(g.inputs[0]).quantizer->numerics() == Numerics::fbgemm);
  text.metadata = {{"qtensor.numerics", "nonsense"}};
  expect_error(QTN_EFORMAT, {"nonsense"}, [&] { parse(text.bytes()); });
}

/// Parses, and runs on x = (1.2, -0.3).
std::vector<std::int64_t> integers_of(const graph::Graph &g) {
  const Tensor x = floats({1, 2}, {1.2f, -0.3f});
  return int_values(graph::evaluate(g, std::span(&x, 1))[0], "y");
}

void integers_that_others_read(void **) {
  const graph::Graph output = parse(model({q("x", "y")}).bytes());
  assert_true(op_names(output) == (Ops{"QuantizeLinear"}));
  assert_true(!output.value(output.inputs[0]).quantizer);
  assert_true(integers_of(output) == (Ints{5, 2}));

  const graph::Graph moved = parse(
      model({q("x", "xq"), {"Transpose", {"xq"}, {"t"}}, dq("t", "td"), {"Relu", {"td"}, {"r"}}, q("r", "y")}).bytes());
  // What only moves them becomes grids of values, as beside other operators on integers.
  assert_true(op_names(moved) == (Ops{"Transpose", "Relu", "QuantizeLinear"}));
  assert_true(integers_of(moved) == (Ints{5, 3}));

  // Another scale on the way back is a multiplication, not a grid: 2 * 0.25.
  const graph::Graph scaled = parse(model({q("x", "xq"), dq("xq", "xd", "2"), q("xd", "y", "2")}).bytes());
  assert_true(op_names(scaled) == (Ops{"QuantizeLinear", "DequantizeLinear", "QuantizeLinear"}));
  assert_true(integers_of(scaled) == (Ints{5, 2}));

  // And so is one of 0.
  ModelText vanishing = model({q("x", "xq"), {"DequantizeLinear", {"xq", "none", "z"}, {"xd"}}, q("xd", "y", "2")});
  vanishing.initializers.push_back(float_tensor("none", {}, {0}));
  for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
    const graph::Graph g = parse(onnx::serialize(parse(vanishing.bytes()), {17, format}));
    assert_true(op_names(g) == (Ops{"QuantizeLinear", "DequantizeLinear", "QuantizeLinear"}));
    assert_true(integers_of(g) == (Ints{7, 7}));
  }
}

void scales_that_no_activation_has(void **) {
  const graph::Graph computed = parse(model({{"Relu", {"x"}, {"r"}},
                                             {"DynamicQuantizeLinear", {"r"}, {"rq", "rs", "rz"}},
                                             {"DequantizeLinear", {"rq", "rs", "rz"}, {"d"}},
                                             {"QuantizeLinear", {"d", "rs", "rz"}, {"y"}}})
                                          .bytes());
  assert_true(op_names(computed) == (Ops{"Relu", "DynamicQuantizeLinear", "DequantizeLinear", "QuantizeLinear"}));
  assert_true(integers_of(computed) == (Ints{255, 0}));

  ModelText by_channel = model({q("x", "xq", "3"), dq("xq", "xd", "3"), q("xd", "y")});
  ModelText blocks = model({{"DequantizeLinear", {"wq", "wb"}, {"w"}, "", "", {int_attribute("block_size", 2)}},
                            {"Add", {"x", "w"}, {"a"}},
                            q("a", "y")});
  for (const std::string &tensor :
       {float_tensor("s3", {2}, {1, 0.1f}), raw_tensor<std::uint8_t>("z3", QTN_UINT8, {2}, {0, 10}),
        raw_tensor<std::int8_t>("wq", QTN_INT8, {1, 2}, {1, 2}), float_tensor("wb", {1, 1}, {0.5f})}) {
    by_channel.initializers.push_back(tensor);
    blocks.initializers.push_back(tensor);
  }
  assert_true(op_names(parse(by_channel.bytes())) == (Ops{"QuantizeLinear", "DequantizeLinear", "QuantizeLinear"}));
  assert_true(integers_of(parse(by_channel.bytes())) == (Ints{5, 2}));
  blocks.opset = 21;
  assert_true(op_names(parse(blocks.bytes())) == (Ops{"Add", "QuantizeLinear"}));
  assert_true(integers_of(parse(blocks.bytes())) == (Ints{6, 4}));
}

// The pair becomes a quantizer; the other QuantizeLinear reads the value as it was.
void pairs_beside_integers(void **) {
  const graph::Graph g =
      parse(model({{"Relu", {"x"}, {"r"}}, q("r", "y", "2"), q("r", "rq"), dq("rq", "rd"), {"Tanh", {"rd"}, {"t"}}},
                  {"y", "t"})
                .bytes());
  assert_true(op_names(g) == (Ops{"Relu", "Identity", "QuantizeLinear", "Tanh"}));
  assert_true(!named(g, "r").quantizer);
  expect_quantizer(named(g, "rd"), 0.5f, 3);
  assert_true(integers_of(g) == (Ints{12, 7}));
}

void integer_inputs(void **) {
  ModelText text = model({dq("x", "d"), {"Relu", {"d"}, {"r"}}, q("r", "y")});
  text.input_type = QTN_UINT8;
  const graph::Graph g = parse(text.bytes());
  assert_true(op_names(g) == (Ops{"DequantizeLinear", "Relu", "QuantizeLinear"}));
  // One layer between integers is one on grids, as one among others.
  for (const char *name : {"d", "r"}) expect_quantizer(named(g, name), 0.5f, 3);
  ModelText real = model({dq("x", "d"), {"Relu", {"d"}, {"y"}}});
  real.input_type = QTN_UINT8;
  real.output_type = QTN_FLOAT32;
  assert_true(!named(parse(real.bytes()), "d").quantizer);
  const std::uint8_t bytes[] = {0, 9};
  const Tensor x = Tensor::from<std::uint8_t>(QTN_UINT8, {1, 2}, bytes);
  assert_true(int_values(graph::evaluate(g, std::span(&x, 1))[0], "y") == (Ints{3, 9}));
}

/// (q - z) * s of a constant, for all, for each column, and for blocks of two columns. Integers stay integers where
/// they have a grid with positive scales: of their type where one holds them, and of 8 bits else.
void scales_of_zero_and_below(void **) {
  const std::vector<std::string> parts{raw_tensor<std::int8_t>("wq", QTN_INT8, {2, 3}, {1, -2, 127, 4, -128, 6}),
                                       raw_tensor<std::uint8_t>("w4", QTN_INT4, {2, 3}, {0xE1, 0x47, 0x68}),
                                       raw_tensor<std::uint8_t>("low", QTN_INT4, {2, 3}, {0xE8, 0x47, 0x68}),
                                       float_tensor("one", {}, {-0.5f}),
                                       float_tensor("none", {}, {0}),
                                       float_tensor("columns", {3}, {-0.5f, 2, -4}),
                                       float_tensor("two_columns", {3}, {0.5f, 0, 4}),
                                       raw_tensor<std::int32_t>("wide", QTN_INT32, {2, 3}, {9, 8, 7, 1 << 30, 5, 4}),
                                       float_tensor("blocks", {2, 2}, {-0.5f, 2, 4, 0}),
                                       raw_tensor<std::int8_t>("zeros", QTN_INT8, {3}, {1, 0, -3})};
  using Floats = std::vector<float>;
  const auto expect = [&](qdtype dtype, const Floats &want, const std::vector<std::string> &inputs,
                          const std::vector<std::string> &attributes = {}) {
    ModelText text = model({{"DequantizeLinear", inputs, {"w"}, "dq", "", attributes}, {"Add", {"x", "w"}, {"y"}}});
    text.opset = 21;
    text.shape = {2, 3};
    for (const std::string &part : parts) text.initializers.push_back(part);
    const graph::Graph g = parse(text.bytes());
    const Tensor &w = named(g, "w").constant;
    assert_int_equal(w.dtype(), dtype);
    assert_true(float_values(w.quantized() ? dequantize(w) : w, "w") == want);
  };
  expect(QTN_INT8, {-0.5f, 1, -63.5f, -2, 64, -3}, {"wq", "one"});
  expect(QTN_INT8, {-0.5f, -4, -508, -2, -256, -24}, {"wq", "columns"});
  expect(QTN_FLOAT32, {0, -4, -520, -1.5f, -256, -36}, {"wq", "columns", "zeros"});
  expect(QTN_INT8, {0, 0, 0, 0, 0, 0}, {"wq", "none"});
  expect(QTN_INT8, {0, 0, 520, 1.5f, 0, 36}, {"wq", "two_columns", "zeros"});
  expect(QTN_INT4, {0, 0, 0, 0, 0, 0}, {"w4", "none"});
  expect(QTN_INT4, {0.5f, 0, 28, 2, 0, 24}, {"w4", "two_columns"});
  expect(QTN_INT32, {4.5f, 0, 28, 1 << 29, 0, 16}, {"wide", "two_columns"});
  expect(QTN_INT8, {-0.5f, 1, 254, 16, -512, 0}, {"wq", "blocks"}, {int_attribute("block_size", 2)});
  expect(QTN_INT4, {-0.5f, -4, -28, -2, -16, -24}, {"w4", "columns"});
  expect(QTN_INT8, {4, -4, -28, -2, -16, -24}, {"low", "columns"});
  expect(QTN_INT4, {4, 1, 14, 16, -32, 0}, {"low", "blocks"}, {int_attribute("block_size", 2)});
}

void refused(void **) {
  const auto error = [](qstatus status, const std::vector<std::string> &texts, ModelText text,
                        const std::vector<std::string> &more = {}) {
    for (const std::string &tensor : more) text.initializers.push_back(tensor);
    expect_error(status, texts, [&] { parse(text.bytes()); });
  };
  const NodeText relu{"Relu", {"xd"}, {"y"}, "relu"};
  error(QTN_EDTYPE, {"dq_xd", "x is float32"}, model({dq("x", "xd"), relu}));
  const std::vector<std::string> two{float_tensor("s3", {2}, {1, 2}),
                                     raw_tensor<std::uint8_t>("z3", QTN_UINT8, {2}, {0, 0})};
  const auto constant = [&](const std::vector<std::string> &inputs, const std::vector<std::string> &attributes = {}) {
    return model({{"DequantizeLinear", inputs, {"w"}, "dq", "", attributes}, {"Add", {"x", "w"}, {"y"}}});
  };
  const std::string integers = raw_tensor<std::int8_t>("wq", QTN_INT8, {2, 3}, {1, 2, 3, 4, 5, 6});
  error(QTN_ESHAPE, {"\"dq\"", "2 scales", "axis 1", "2x3"}, constant({"wq", "s3"}), {integers, two[0]});
  error(QTN_EFORMAT, {"\"dq\"", "axis 2"}, constant({"wq", "s3"}, {int_attribute("axis", 2)}), {integers, two[0]});
  error(QTN_ESHAPE, {"\"dq\"", "blocks of 2 along axis 1"}, constant({"wq", "s3"}, {int_attribute("block_size", 2)}),
        {integers, two[0]});
  error(QTN_ESHAPE, {"\"dq\"", "scalar", "2"}, constant({"wq", "s", "z3"}), {integers, two[1]});
  error(QTN_EFORMAT, {"\"dq\"", "int8", "uint8"}, constant({"wq", "s", "z"}), {integers});
  error(QTN_EFORMAT, {"\"dq\"", "scale nan"}, constant({"wq", "s3"}), {integers, float_tensor("s3", {}, {NAN})});
  error(QTN_EFORMAT, {"\"dq\"", "scale inf"}, constant({"wq", "s3"}, {int_attribute("axis", 0)}),
        {integers, float_tensor("s3", {2}, {0, INFINITY})});
  error(QTN_EFORMAT, {"\"q\"", "scale 0"}, model({{"QuantizeLinear", {"x", "s3", "z"}, {"xq"}, "q"}, dq("xq", "y")}),
        {float_tensor("s3", {}, {0})});
  error(QTN_EFORMAT, {"\"dq\"", "int8, not float32"}, constant({"wq", "wq"}), {integers});
  error(QTN_EFORMAT, {"\"dq\"", "input 0"}, constant({"", "s"}));
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::input_and_activation),
      cmocka_unit_test(qtn::one_quantize_many_dequantize),
      cmocka_unit_test(qtn::one_pair_for_each_reader),
      cmocka_unit_test(qtn::other_readers_see_the_float),
      cmocka_unit_test(qtn::output_that_is_read_quantized),
      cmocka_unit_test(qtn::two_grids_for_one_value),
      cmocka_unit_test(qtn::pairs_in_a_row),
      cmocka_unit_test(qtn::outputs_keep_their_names),
      cmocka_unit_test(qtn::constants),
      cmocka_unit_test(qtn::shared_scales_behind_identity),
      cmocka_unit_test(qtn::numerics_from_metadata),
      cmocka_unit_test(qtn::integers_that_others_read),
      cmocka_unit_test(qtn::scales_that_no_activation_has),
      cmocka_unit_test(qtn::pairs_beside_integers),
      cmocka_unit_test(qtn::integer_inputs),
      cmocka_unit_test(qtn::scales_of_zero_and_below),
      cmocka_unit_test(qtn::refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
