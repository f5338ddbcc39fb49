// SPDX-License-Identifier: Apache-2.0
// Operators that are read as several others give what ONNX Runtime or ONNX's reference gives, also when the model has
// been written and read again.
#include <string>

#include "graph/graph.hpp"
#include "onnx/onnx.hpp"
#include "onnx/support.hpp"
#include "ops/support.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

const std::string kFolder = std::string(QTN_GOLDEN_DIR) + "/composed/";

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
      "node \"at\" (SequenceAt): reads the sequence \"s\"; sequences are supported where constants say the positions",
      {made,
       {"Cast", {"x"}, {"i"}, "c", "", {int_attribute("to", QTN_INT64)}},
       {"SequenceAt", {"s", "i"}, {"y"}, "at"}});
  refuse("node \"conv\" (FusedConv): activation \"Gelu\" is not supported",
         {{"FusedConv", {"x", "x"}, {"y"}, "conv", "com.microsoft", {text_attribute("activation", "Gelu")}}});
  refuse("node \"m\" (FusedMatMul): transBatchA is not supported",
         {{"FusedMatMul", {"x", "x"}, {"y"}, "m", "com.microsoft", {int_attribute("transBatchA", 1)}}});
  refuse("node \"g\" (GatherBlockQuantized): its data and zero points must be constants",
         {{"GatherBlockQuantized", {"x", "x", "x"}, {"y"}, "g", "com.microsoft"}});
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::as_their_own_programs), cmocka_unit_test(qtn::test::written_and_read_again),
      cmocka_unit_test(qtn::test::in_operators_of_onnx), cmocka_unit_test(qtn::test::refused_otherwise)};
  return cmocka_run_group_tests_name("onnx/composed", tests, nullptr, nullptr);
}
