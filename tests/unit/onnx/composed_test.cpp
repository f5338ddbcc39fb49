// SPDX-License-Identifier: Apache-2.0
// Operators that are read as several others give what ONNX Runtime or ONNX's reference gives, also when the model has
// been written and read again.
#include <ctime>
#include <limits>
#include <string>

#include "graph/graph.hpp"
#include "onnx/onnx.hpp"
#include "onnx/support.hpp"
#include "ops/support.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

const std::string kFolder = QTN_GOLDEN_DIR "/composed/";

nlohmann::json all_cases() { return read_json(kFolder + "composed.json").at("cases"); }

void expect_runs(const runtime::Session &session, const nlohmann::json &runs, const std::string &what) {
  assert_true(!runs.empty());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::vector<Tensor> inputs;
    for (const auto &x : runs[r].at("inputs")) inputs.push_back(tensor_of(x));
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    const std::vector<Tensor> got = session.run(pointers);
    assert_int_equal(got.size(), runs[r].at("outputs").size());
    for (std::size_t o = 0; o < got.size(); ++o)
      expect_equal(got[o], tensor_of(runs[r].at("outputs").at(o)), 2e-5, cat(what, ", run ", r, ", output ", o));
  }
}

void as_their_own_programs(void **) {
  const auto cases = all_cases();
  assert_true(cases.size() >= 40);
  for (const auto &test : cases) {
    const std::string name = test.at("name");
    for (const auto engine : {runtime::Engine::reference, runtime::Engine::native})
      expect_runs(runtime::Session(onnx::load(kFolder + name + ".onnx"), {engine, 1}), test.at("runs"),
                  cat(name, engine == runtime::Engine::native ? ", native" : ""));
  }
}

void written_and_read_again(void **) {
  for (const auto &test : all_cases()) {
    const std::string name = test.at("name"), bytes = onnx::serialize(onnx::load(kFolder + name + ".onnx"), {23});
    expect_runs(runtime::Session(onnx::parse(std::as_bytes(std::span(bytes)), ""), {}), test.at("runs"), name);
  }
}

/// A fused activation is one that the optimizer knows: nothing of the fused operator is left.
void in_operators_of_onnx(void **) {
  for (const auto &[name, ops] :
       {std::pair("fused_conv_relu", "Conv Relu"), std::pair("fused_gemm_relu", "Gemm Relu"),
        std::pair("fused_matmul_scaled", "Transpose MatMul Mul"), std::pair("construct_concat", "Concat Identity")}) {
    std::string got;
    const graph::Graph g = onnx::load(kFolder + name + ".onnx");
    for (const graph::Node &node : g.nodes) got += (got.empty() ? "" : " ") + std::string(node.op->name);
    assert_string_equal(got.c_str(), ops);
  }
}

std::string text_attribute(const std::string &name, const std::string &value) {
  namespace f = onnx::field::attribute;
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::name, name);
    attribute.add_string(f::s, value);
    attribute.add_enum(f::type, 3);
  });
}

/// What cannot be said is refused, in words that hold the node.
void refused_otherwise(void **) {
  const auto refuse = [](const std::string &text, std::vector<NodeText> nodes,
                         std::vector<std::string> outputs = {"y"}) {
    ModelText model;
    model.nodes = std::move(nodes);
    model.outputs = std::move(outputs);
    expect_error(QTN_EUNSUPPORTED, text, [&] { parse(model.bytes()); });
  };
  const NodeText made{"SequenceConstruct", {"x", "x"}, {"s"}, "make"};
  refuse("output \"s\" is a sequence", {made}, {"s"});
  refuse("node \"n\" (Neg): reads the sequence \"s\"", {made, {"Neg", {"s"}, {"y"}, "n"}});
  refuse(
      "node \"in\" (SequenceInsert): reads the sequence \"s\"; sequences are what ONNX's operators of sequences, If and "
      "Loop make and read, except where runs decide at which position an item is put in, or into how many parts a "
      "tensor is cut",
      {{"Neg", {"x"}, {"m"}, "unknown"},
       {"SequenceConstruct", {"x", "m"}, {"s"}, "make"},
       {"Cast", {"x"}, {"i"}, "c", "", {int_attribute("to", QTN_INT64)}},
       {"SequenceInsert", {"s", "x", "i"}, {"t"}, "in"},
       {"SequenceAt", {"t", "i"}, {"y"}, "at"}});
  refuse("node \"conv\" (FusedConv): activation \"Gelu\" is not supported",
         {{"FusedConv", {"x", "x"}, {"y"}, "conv", "com.microsoft", {text_attribute("activation", "Gelu")}}});
  refuse("node \"g\" (GatherBlockQuantized): its data and zero points must be constants",
         {{"GatherBlockQuantized", {"x", "x", "x"}, {"y"}, "g", "com.microsoft"}});
}

void old_forms_refused(void **) {
  const auto refuse = [](std::int64_t opset, const std::string &text, NodeText node) {
    ModelText model;
    model.opset = opset;
    model.nodes = {std::move(node)};
    expect_error(QTN_EUNSUPPORTED, text, [&] { parse(model.bytes()); });
  };
  refuse(6, "node \"a\" (Add): axis 9 is outside of every tensor",
         {"Add", {"x", "x"}, {"y"}, "a", "", {int_attribute("axis", 9), int_attribute("broadcast", 1)}});
  refuse(6, "node \"a\" (Add): an operand of rank 2 reaches beyond the other one from axis 1",
         {"Add", {"x", "x"}, {"y"}, "a", "", {int_attribute("axis", 1), int_attribute("broadcast", 1)}});
  refuse(5, "node \"c\" (Cast): to \"COMPLEX64\" is not supported",
         {"Cast", {"x"}, {"y"}, "c", "", {text_attribute("to", "COMPLEX64")}});
  refuse(8, "node \"s\" (Scan): sequence_lens is not supported", {"Scan", {"x", "x"}, {"y"}, "s"});
  refuse(8, "node \"b\" (BatchNormalization): spatial 0 is not supported in training mode",
         {"BatchNormalization", {"x", "x", "x", "x", "x"}, {"y", "m"}, "b", "", {int_attribute("spatial", 0)}});
  refuse(9, "node \"k\" (Crop): border has 0 numbers and scale 0, not 4, and 2 or none", {"Crop", {"x"}, {"y"}, "k"});
}

/// A small file must not take what a large one may: sequences are kept by the names of their items.
void many_sequences(void **) {
  ModelText model;
  model.nodes = {{"SequenceConstruct", std::vector<std::string>(4096, "x"), {"s0"}, "make"}};
  for (int i = 0; i < 300; ++i)
    model.nodes.push_back({"OptionalGetElement", {cat("s", i)}, {cat("s", i + 1)}, cat("copy", i)});
  model.nodes.push_back({"ConcatFromSequence", {"s300"}, {"y"}, "join", "", {int_attribute("axis", 0)}});
  expect_error(QTN_EUNSUPPORTED,
               "node \"copy255\" (OptionalGetElement): with it, sequences of the file hold 1052672 items, over the "
               "limit of 1048576",
               [&] { parse(model.bytes()); });
  model.nodes.resize(11);
  model.nodes.push_back({"ConcatFromSequence", {"s10"}, {"y"}, "join", "", {int_attribute("axis", 0)}});
  assert_int_equal(parse(model.bytes()).nodes.size(), 1);
}

/// Nodes that ask what a large constant is do not read it.
void constants_are_not_read_by_each(void **) {
  ModelText model;
  const std::vector<float> large(std::size_t{1} << 22);
  model.initializers = {float_tensor("w", {1, std::int64_t{1} << 22}, large),
                        raw_tensor<std::int64_t>("i", QTN_INT64, {1}, {0})};
  model.nodes = {{"SequenceConstruct", {"x", "x"}, {"s"}, "make"}};
  constexpr int kNodes = 3000;
  for (int n = 0; n < kNodes; ++n)
    model.nodes.push_back(
        {"ArrayFeatureExtractor", {"w", "i"}, {n == 0 ? "y" : cat("y", n)}, cat("take", n), "ai.onnx.ml"});
  const auto begin = std::clock();
  assert_int_equal(parse(model.bytes()).outputs.size(), 1);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (seconds > 5) fail_test(kNodes, " nodes took ", seconds, " s");
}

/// A shape that the file says need not be one that any memory holds.
void features_without_end(void **) {
  ModelText model;
  model.inputs = {"x", "ids", "cosines", "sines"};
  model.shape = {1, std::numeric_limits<std::int64_t>::max()};
  model.nodes = {{"RotaryEmbedding", {"x", "ids", "cosines", "sines"}, {"y"}, "turn", "com.microsoft"}};
  expect_error(QTN_EUNSUPPORTED, "node \"turn\" (RotaryEmbedding): without num_heads", [&] { parse(model.bytes()); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::as_their_own_programs),
                              cmocka_unit_test(qtn::test::written_and_read_again),
                              cmocka_unit_test(qtn::test::in_operators_of_onnx),
                              cmocka_unit_test(qtn::test::refused_otherwise),
                              cmocka_unit_test(qtn::test::old_forms_refused),
                              cmocka_unit_test(qtn::test::many_sequences),
                              cmocka_unit_test(qtn::test::constants_are_not_read_by_each),
                              cmocka_unit_test(qtn::test::features_without_end)};
  return cmocka_run_group_tests_name("onnx/composed", tests, nullptr, nullptr);
}
