// SPDX-License-Identifier: Apache-2.0
// Nodes that would be read as several others, but say what these cannot: every refusal names the node and the value.
#include <limits>

#include "support.hpp"

namespace qtn::test {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::string float_attribute(const std::string &name, float value) {
  namespace f = onnx::field::attribute;
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::name, name);
    attribute.add_float(f::f, value);
    attribute.add_enum(f::type, 1);
  });
}

std::string int_tensor(const std::string &name, const Ints &dims, const Ints &values) {
  return raw_tensor(name, QTN_INT64, dims, values);
}

std::string codes_tensor(const std::string &name, const Ints &dims, const std::vector<std::uint8_t> &values) {
  return raw_tensor(name, QTN_UINT8, dims, values);
}

/// The message, to its end, of a model with these nodes.
void expect_refused(const std::string &text, const ModelText &model, qstatus status = QTN_EUNSUPPORTED) {
  try {
    parse(model.bytes());
  } catch (const Error &e) {
    const std::string prefix = status == QTN_EFORMAT ? "model is not a valid ONNX file: " : "model: ";
    assert_string_equal(e.what(), (prefix + text).c_str());
    assert_int_equal(e.status(), status);
    return;
  }
  fail_test("no error: ", text);
}

ModelText of_images(NodeText node) { return {.nodes = {std::move(node)}, .shape = {1, 4, 4, 2}}; }

void sequences(void **) {
  const NodeText made{"SequenceConstruct", {"x", "x"}, {"s"}, "make"};
  const auto at = [&](std::int64_t position) {
    return ModelText{.nodes = {made, {"SequenceAt", {"s", "p"}, {"y"}, "at"}},
                     .initializers = {int_tensor("p", {}, {position})}};
  };
  for (const std::int64_t inside : {-2, -1, 0, 1}) assert_int_equal(parse(at(inside).bytes()).nodes.size(), 1);
  for (const std::int64_t outside : {std::int64_t{2}, std::int64_t{-3}, kLargest})
    expect_refused(cat("node \"at\" (SequenceAt): position ", outside, " is outside of a sequence of 2"), at(outside));
  expect_refused("node \"at\" (SequenceAt): position 0 is outside of a sequence of 0",
                 {.nodes = {{"SequenceEmpty", {}, {"s"}}, {"SequenceAt", {"s", "p"}, {"y"}, "at"}},
                  .initializers = {int_tensor("p", {}, {0})}});
  for (const std::int64_t outside : {3, -3})
    expect_refused(cat("node \"in\" (SequenceInsert): position ", outside, " is outside of a sequence of 2"),
                   {.nodes = {made, {"SequenceInsert", {"s", "x", "p"}, {"t"}, "in"}},
                    .initializers = {int_tensor("p", {}, {outside})}});
}

void parts(void **) {
  const auto split = [](const std::string &lengths, std::int64_t position) {
    return ModelText{.nodes = {{"SplitToSequence", {"x", "l"}, {"s"}, "split", "", {int_attribute("axis", 1)}},
                               {"SequenceAt", {"s", "p"}, {"y"}, "at"}},
                     .initializers = {lengths, int_tensor("p", {}, {position})},
                     .shape = {1, 4}};
  };
  assert_int_equal(parse(split(int_tensor("l", {}, {2}), 1).bytes()).outputs.size(), 1);
  expect_refused("node \"split\" (SplitToSequence): split is 0", split(int_tensor("l", {}, {0}), 0));
  expect_refused(cat("node \"split\" (SplitToSequence): split is ", kLargest),
                 split(int_tensor("l", {}, {kLargest}), 0));
  expect_refused("node \"split\" (SplitToSequence): split has negative lengths", split(int_tensor("l", {}, {-1}), 0));
  expect_refused("node \"split\" (SplitToSequence): split has negative lengths",
                 split(int_tensor("l", {2}, {5, -1}), 0));
  expect_refused(cat("node \"at\" (SequenceAt): position ", kLargest, " is outside of every sequence"),
                 split(int_tensor("l", {}, {2}), kLargest));
  // What cannot be said otherwise stays, and is no operator here.
  for (const std::string &lengths : {int_tensor("l", {0}, {}), int_tensor("l", {1, 1}, {2})})
    expect_error(QTN_EUNSUPPORTED, "SplitToSequence (domain ai.onnx, opset 17) of 1 node",
                 [&] { parse(split(lengths, 0).bytes()); });
  assert_int_equal(parse(split(int_tensor("l", {}, {2}), -1).bytes()).outputs.size(), 1);
}

/// Where it is said by a node, too.
void positions_of_constant_nodes(void **) {
  const NodeText made{"SequenceConstruct", {"x", "w"}, {"s"}, "make"}, at{"SequenceAt", {"s", "p"}, {"y"}, "at"};
  for (const std::string &attribute : {int_attribute("value_int", 1), ints_attribute("value_ints", {1})}) {
    const ModelText model{.nodes = {{"Constant", {}, {"p"}, "c", "", {attribute}}, made, at},
                          .initializers = {float_tensor("w", {1, 2}, {3, 4})}};
    const Tensor x = floats({1, 2}, {1, 2});
    assert_true(equal(graph::evaluate(parse(model.bytes()), std::span(&x, 1))[0], floats({1, 2}, {3, 4})));
  }
  expect_refused(
      "node \"at\" (SequenceAt): position must hold integers, not float32",
      {.nodes = {{"SequenceConstruct", {"x", "x"}, {"s"}}, at}, .initializers = {float_tensor("p", {}, {0})}},
      QTN_EDTYPE);
}

void items_that_are_absent(void **) {
  expect_refused("node \"make\" (SequenceConstruct): an item is absent",
                 {.nodes = {{"SequenceConstruct", {"x", ""}, {"s"}, "make"}, {"SequenceLength", {"s"}, {"y"}}}},
                 QTN_EFORMAT);
  expect_refused("node \"in\" (SequenceInsert): an item is absent",
                 {.nodes = {{"SequenceConstruct", {"x"}, {"s"}},
                            {"SequenceInsert", {"s"}, {"t"}, "in"},
                            {"ConcatFromSequence", {"t"}, {"y"}, "join", "", {int_attribute("axis", 0)}}}},
                 QTN_EFORMAT);
  expect_refused("node \"split\" (SplitToSequence): input 0 is absent",
                 {.nodes = {{"SplitToSequence", {}, {"s"}, "split"}, {"SequenceLength", {"s"}, {"y"}}}}, QTN_EFORMAT);
}

void attributes_of_another_type(void **) {
  expect_refused("node \"join\" (ConcatFromSequence): attribute \"axis\" is a float, not an int",
                 {.nodes = {{"SequenceConstruct", {"x"}, {"s"}},
                            {"ConcatFromSequence", {"s"}, {"y"}, "join", "", {float_attribute("axis", 0)}}}},
                 QTN_EFORMAT);
}

/// Nobody made the sequence.
void operators_of_no_sequence(void **) {
  for (const char *op : {"SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "ConcatFromSequence"})
    expect_refused(cat("operator ", op, " (domain ai.onnx, opset 17) of node \"n\" is not supported"),
                   {.nodes = {{op, {"x", "x", "x"}, {"y"}, "n", "", {int_attribute("axis", 0)}}}});
}

void images_whose_channels_come_last(void **) {
  const std::string text = "the number of axes of its weights must be known, and at least 3";
  expect_refused("node \"c\" (NhwcFusedConv): " + text,
                 of_images({"NhwcFusedConv", {"x", "unknown"}, {"y"}, "c", "com.microsoft"}));
  const std::string last = int_attribute("channels_last", 1);
  ModelText flat =
      of_images({"QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"y"}, "c", "com.microsoft", {last}});
  flat.initializers = {codes_tensor("w", {2, 2}, {1, 2, 3, 4})};
  expect_refused("node \"c\" (QLinearConv): " + text, flat);
}

/// Files may leave out what no operator can do without.
void operators_without_operands(void **) {
  const std::string last = int_attribute("channels_last", 1), kernel = ints_attribute("kernel_shape", {2, 2});
  expect_error(QTN_EFORMAT, "(Transpose): 0 inputs given, 1 to 1 expected", [&] {
    parse(of_images({"NhwcMaxPool", {}, {"y"}, "p", "com.microsoft", {kernel}}).bytes());
  });
  for (const char *op : {"QLinearAveragePool", "QLinearGlobalAveragePool"})
    expect_error(QTN_EFORMAT, "(Transpose): 0 inputs given, 1 to 1 expected", [&] {
      parse(of_images({op, {}, {"y"}, "p", "com.microsoft", {kernel, last}}).bytes());
    });
  for (const char *op : {"FusedConv", "Attention", "BiasGelu", "Gelu", "EmbedLayerNormalization", "Trilu"})
    expect_error(QTN_EFORMAT, "inputs", [&] { parse(of_images({op, {}, {"y"}, "n", "com.microsoft"}).bytes()); });
}

void operators_without_results(void **) {
  ModelText model;
  model.nodes = {{"Relu", {"x"}, {"y"}}};
  for (const char *op : {"SequenceConstruct", "SequenceEmpty", "Optional", "OptionalHasElement"}) {
    model.nodes.resize(1);
    model.nodes.push_back({op, {}, {}, "n"});
    expect_refused(cat("node \"n\" (", op, "): has no outputs"), model, QTN_EFORMAT);
  }
  for (const char *op : {"Gelu", "FusedGemm", "Attention", "RotaryEmbedding", "DynamicQuantizeLSTM"}) {
    model.nodes.resize(1);
    model.nodes.push_back({op, {"x", "x", "x"}, {}, "n", "com.microsoft"});
    expect_refused(cat("node \"n\" (", op, "): has no outputs"), model, QTN_EFORMAT);
    model.nodes[1].outputs = {"", ""};
    expect_refused(cat("node \"n\" (", op, "): has no outputs"), model, QTN_EFORMAT);
  }
}

void attention(void **) {
  const auto model = [](const std::vector<std::string> &attributes) {
    ModelText text{.nodes = {{"Attention", {"x", "w"}, {"y"}, "a", "com.microsoft", attributes}},
                   .initializers = {float_tensor("w", {2, 6}, std::vector<float>(12))},
                   .shape = {1, 3, 2}};
    text.nodes[0].attributes.push_back(int_attribute("num_heads", 1));
    return text;
  };
  assert_true(parse(model({}).bytes()).nodes.size() > 2);
  expect_refused("node \"a\" (Attention): do_rotary is not supported", model({int_attribute("do_rotary", 1)}));
  expect_refused("node \"a\" (Attention): past_present_share_buffer is not supported",
                 model({int_attribute("past_present_share_buffer", 1)}));
  expect_refused("node \"a\" (Attention): qkv_hidden_sizes has 2 numbers, not 3",
                 model({ints_attribute("qkv_hidden_sizes", {2, 2})}));
}

void attention_with_graphs(void **) {
  const auto model = [](const std::vector<std::string> &attributes, const Ints &shape = {1, 2, 3, 4}) {
    ModelText text{.opset = 26, .nodes = {{"FlexAttention", {"x", "x", "x"}, {"y"}, "a", "ai.onnx.preview"}}};
    text.nodes[0].attributes = attributes;
    text.shape = shape;
    return text;
  };
  const NodeText neg{"Neg", {"s"}, {"t"}, "neg"};
  assert_true(parse(model({graph_attribute("score_mod", {"s"}, {neg}, {"t"})}).bytes()).nodes.size() > 4);
  expect_refused("node \"a\" (FlexAttention): a graph of it has 2 inputs and 1 outputs, not 1 and 1",
                 model({graph_attribute("score_mod", {"s", "u"}, {neg}, {"t"})}));
  expect_refused("node \"a\" (MatMul): reads \"nothing\", which no node, input or initializer makes",
                 model({graph_attribute("prob_mod", {"s"}, {neg}, {"nothing"})}), QTN_EFORMAT);
  const NodeText nested{"If", {"s"}, {"t"}, "if", "", {graph_attribute("then_branch", {}, {}, {"s"})}};
  expect_refused("node \"a/if\" (If): has no graph else_branch",
                 model({graph_attribute("score_mod", {"s"}, {nested}, {"t"})}), QTN_EFORMAT);
  expect_refused("node \"a\" (FlexAttention): scale is -1", model({float_attribute("scale", -1)}));
  expect_refused("node \"a\" (FlexAttention): scale is nan", model({float_attribute("scale", NAN)}));
  for (const Ints &shape : {Ints{1, 2, 3, -1}, Ints{1, 2, 3}})
    expect_refused("node \"a\" (FlexAttention): without scale, the features of Q must be known", model({}, shape));
}

void heads_that_are_not_shared(void **) {
  const auto model = [](std::int64_t heads) {
    return ModelText{.opset = 26,
                     .nodes = {{"FlexAttention", {"x", "k", "k"}, {"y"}, "a", "ai.onnx.preview"}},
                     .initializers = {float_tensor("k", {1, heads, 1, 2}, std::vector<float>(2 * heads))},
                     .shape = {1, 6, 1, 2}};
  };
  for (const std::int64_t heads : {1, 2, 3, 6}) assert_true(parse(model(heads).bytes()).nodes.size() > 4);
  for (const std::int64_t heads : {0, 4, 12})
    expect_refused(cat("node \"a\" (FlexAttention): 6 heads of Q do not share ", heads, " of K"), model(heads));
}

void rotations(void **) {
  const auto model = [](const std::vector<std::string> &attributes) {
    return ModelText{.nodes = {{"RotaryEmbedding", {"x", "i", "c", "c"}, {"y"}, "r", "com.microsoft", attributes}},
                     .initializers = {int_tensor("i", {1, 2}, {0, 1}), float_tensor("c", {2, 2}, {1, 1, 1, 1})},
                     .shape = {1, 2, 4}};
  };
  assert_true(!parse(model({}).bytes()).nodes.empty());
  expect_refused("node \"r\" (RotaryEmbedding): is_packed_batching is not supported",
                 model({int_attribute("is_packed_batching", 1)}));
  expect_refused("node \"r\" (RotaryEmbedding): scale is 0.5, not 1", model({float_attribute("scale", 0.5f)}));
}

void cropped_images(void **) {
  const auto model = [](const Ints &border, const Ints &scale) {
    ModelText text = of_images({"Crop", {"x"}, {"y"}, "k", "", {ints_attribute("border", border)}});
    if (!scale.empty()) text.nodes[0].attributes.push_back(ints_attribute("scale", scale));
    text.opset = 9;
    return text;
  };
  assert_int_equal(parse(model({0, 1, 1, 0}, {}).bytes()).nodes.size(), 1);
  expect_refused("node \"k\" (Crop): border has 3 numbers and scale 0, not 4, and 2 or none", model({0, 0, 0}, {}));
  expect_refused("node \"k\" (Crop): border has 4 numbers and scale 1, not 4, and 2 or none", model({0, 0, 0, 0}, {1}));
  expect_refused("node \"k\" (Crop): border or scale holds -1", model({0, -1, 0, 0}, {}));
  expect_refused(cat("node \"k\" (Crop): border or scale holds ", kLargest), model({0, 0, 0, 0}, {1, kLargest}));
}

void rows_of_coded_tables(void **) {
  const auto model = [](const std::string &data, const std::vector<std::string> &attributes,
                        const std::string &scales = "s") {
    return ModelText{.nodes = {{"GatherBlockQuantized", {"d", "i", scales}, {"y"}, "g", "com.microsoft", attributes}},
                     .initializers = {data, int_tensor("i", {1}, {0}), float_tensor("s", {2, 1}, {1, 1})}};
  };
  const std::string data = codes_tensor("d", {2, 8}, std::vector<std::uint8_t>(16));
  assert_true(!parse(model(data, {int_attribute("block_size", 16)}).bytes()).nodes.empty());
  expect_refused("node \"g\" (GatherBlockQuantized): bits is 3, not 2, 4 or 8",
                 model(data, {int_attribute("bits", 3)}));
  expect_refused("node \"g\" (GatherBlockQuantized): data is a scalar", model(codes_tensor("d", {}, {0}), {}));
  expect_refused("node \"g\" (GatherBlockQuantized): its scales must be constants where it has no zero points",
                 model(data, {}, "x"));
}

void products_by_codes(void **) {
  const auto model = [](std::int64_t n, std::int64_t type, std::int64_t block, const std::string &codes = "b",
                        const std::string &largest = "s") {
    const std::vector<std::string> attributes{int_attribute("N", n), int_attribute("K", 2),
                                              int_attribute("quant_type", type), int_attribute("block_size", block)};
    return ModelText{
        .nodes = {{"MatMulBnb4", {"x", codes, largest}, {"y"}, "m", "com.microsoft", attributes}},
        .initializers = {codes_tensor("b", {9}, std::vector<std::uint8_t>(9)), float_tensor("s", {2}, {1, 1})}};
  };
  assert_string_equal(parse(model(9, 1, 16).bytes()).nodes.at(0).op->name, "MatMul");
  const std::string forms = ", not 0 or 1 and a power of 2 from 16 on", node = "node \"m\" (MatMulBnb4): ";
  expect_refused(node + "quant_type is 2 and block_size 16" + forms, model(9, 2, 16));
  expect_refused(node + "quant_type is 0 and block_size 8" + forms, model(9, 0, 8));
  expect_refused(node + "quant_type is 0 and block_size 24" + forms, model(9, 0, 24));
  const std::string inputs = node + "B must be constant bytes, and absmax constant floats";
  for (const char *name : {"x", "s"}) expect_refused(inputs, model(9, 1, 16, name));
  for (const char *name : {"x", "b"}) expect_refused(inputs, model(9, 1, 16, "b", name));
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{10}, kLargest})
    expect_refused(cat(node, "B has 9 bytes and absmax 2 numbers for N = ", n, ", K = 2 and blocks of 16"),
                   model(n, 1, 16));
  expect_refused(node + "B has 9 bytes and absmax 2 numbers for N = 9, K = 2 and blocks of 32", model(9, 1, 32));
}

void columns_of_what_is_not_known(void **) {
  expect_refused("node \"e\" (ArrayFeatureExtractor): the number of axes of its first input must be known",
                 {.nodes = {{"Neg", {"x"}, {"n"}}, {"ArrayFeatureExtractor", {"n", "x"}, {"y"}, "e", "ai.onnx.ml"}}});
}

/// One direction, two features, one cell.
ModelText integer_lstm() {
  return {.nodes = {{"DynamicQuantizeLSTM",
                     {"x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"},
                     {"y"},
                     "l",
                     "com.microsoft",
                     {int_attribute("hidden_size", 1)}}},
          .initializers = {codes_tensor("w", {1, 2, 4}, std::vector<std::uint8_t>(8)),
                           codes_tensor("r", {1, 1, 4}, std::vector<std::uint8_t>(4)), float_tensor("s", {1}, {1}),
                           codes_tensor("z", {1}, {0})},
          .shape = {3, 1, 2}};
}

void recurrent_layers_of_integers(void **) {
  const auto expect_bad = [](const std::string &text, std::size_t i, const std::string &initializer) {
    ModelText model = integer_lstm();
    model.initializers[i] = initializer;
    expect_refused("node \"l\" (DynamicQuantizeLSTM): " + text, model);
  };
  assert_int_equal(parse(integer_lstm().bytes()).nodes.size(), 1);
  expect_bad("W is not a constant", 0, codes_tensor("other", {1, 2, 4}, std::vector<std::uint8_t>(8)));
  expect_bad("W is 2x4", 0, codes_tensor("w", {2, 4}, std::vector<std::uint8_t>(8)));
  expect_bad("R is 1x0x4", 1, codes_tensor("r", {1, 0, 4}, {}));
  expect_bad("W is float32, not int8 or uint8", 0, float_tensor("w", {1, 2, 4}, std::vector<float>(8)));
  expect_bad("a scale is not a constant", 2, float_tensor("other", {1}, {1}));
  expect_bad("a scale is 2, not 1 or 1x4", 2, float_tensor("s", {2}, {1, 1}));
  expect_bad("a zero point is not a constant", 3, codes_tensor("other", {1}, {0}));
  expect_bad("the zero point of W is int8", 3, raw_tensor<std::int8_t>("z", QTN_INT8, {1}, {0}));
}

void decoders(void **) {
  const auto expect_bad = [](const char *op, const std::string &text, const std::vector<std::string> &attributes) {
    expect_refused(cat("node \"n\" (", op, "): ", text),
                   of_images({op, {"x", "x", "x", "x"}, {"y"}, "n", "com.microsoft", attributes}));
  };
  for (const char *op : {"LinearAttention", "CausalConvWithState"})
    expect_bad(op, "state_window is 2, not 0", {int_attribute("state_window", 2)});
  expect_bad("CausalConvWithState", "ndim is 2, not 1", {int_attribute("ndim", 2)});
  expect_bad("BranchwiseRMSNorm", "num_branches is -1", {int_attribute("num_branches", -1)});
  expect_bad("MRotaryEmbedding", "mrope_section has 2 numbers, not 3", {ints_attribute("mrope_section", {1, 2})});
  for (const std::int64_t wrong : {std::int64_t{-1}, kLargest})
    expect_bad("MRotaryEmbedding", cat("mrope_section holds ", wrong),
               {ints_attribute("mrope_section", {1, wrong, 2})});
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(sequences),
                              cmocka_unit_test(parts),
                              cmocka_unit_test(positions_of_constant_nodes),
                              cmocka_unit_test(items_that_are_absent),
                              cmocka_unit_test(attributes_of_another_type),
                              cmocka_unit_test(operators_of_no_sequence),
                              cmocka_unit_test(images_whose_channels_come_last),
                              cmocka_unit_test(operators_without_operands),
                              cmocka_unit_test(operators_without_results),
                              cmocka_unit_test(attention),
                              cmocka_unit_test(attention_with_graphs),
                              cmocka_unit_test(heads_that_are_not_shared),
                              cmocka_unit_test(rotations),
                              cmocka_unit_test(cropped_images),
                              cmocka_unit_test(rows_of_coded_tables),
                              cmocka_unit_test(products_by_codes),
                              cmocka_unit_test(columns_of_what_is_not_known),
                              cmocka_unit_test(recurrent_layers_of_integers),
                              cmocka_unit_test(decoders)};
  return cmocka_run_group_tests_name("onnx/composed_refusals", tests, nullptr, nullptr);
}
