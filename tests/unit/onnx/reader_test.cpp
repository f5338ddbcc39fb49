// SPDX-License-Identifier: Apache-2.0
// Graphs read from model files: what becomes of nodes and names, and every way a file can be bad.
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

ModelText relu_model() { return {.nodes = {{"Relu", {"x"}, {"y"}, "relu"}}}; }

void expect_bad(qstatus status, const std::vector<std::string> &texts, const ModelText &model) {
  expect_error(status, texts, [&] { parse(model.bytes()); });
}

void opsets(void **) {
  for (const std::int64_t opset : {1, 6, 7, 13, 28}) {
    ModelText model = relu_model();
    model.opset = opset;
    assert_int_equal(parse(model.bytes()).nodes.size(), 1);
  }
  for (const std::int64_t opset : {29, -1}) {
    ModelText model = relu_model();
    model.opset = opset;
    expect_bad(QTN_EUNSUPPORTED, {cat("opset ", opset), "1 to 28"}, model);
  }
  ModelText none = relu_model();
  none.opset = 0;
  expect_bad(QTN_EFORMAT, {"which opset"}, none);
}

void other_domains_do_no_harm(void **) {
  namespace f = onnx::field;
  std::string bytes = relu_model().bytes();
  bytes += write([](pbf_writer &model) {
    pbf_writer opset(model, f::model::opset_import);
    opset.add_string(f::opset::domain, "com.example");
    opset.add_int64(f::opset::version, 99);
  });
  assert_int_equal(parse(bytes).nodes.size(), 1);
}

void old_forms_are_rewritten(void **) {
  namespace f = onnx::field::attribute;
  const auto number = [](const char *name, float value) {
    return write([&](pbf_writer &a) {
      a.add_string(f::name, name);
      a.add_float(f::f, value);
      a.add_enum(f::type, 1);
    });
  };
  // The name the first bound would get is taken further down.
  const graph::Graph g =
      parse(ModelText{.opset = 9,
                      .nodes = {{"Clip", {"x"}, {"a"}, "clip", "", {number("min", -1), number("max", 2)}},
                                {"Relu", {"a"}, {"clip_input1"}},
                                {"Relu", {"clip_input1"}, {"y"}}}}
                .bytes());
  const graph::Node &clip = g.nodes[0];
  assert_int_equal(clip.inputs.size(), 3);
  assert_int_equal(clip.attrs.size(), 0);
  assert_true(*g.value(clip.inputs[1]).constant.as<float>() == -1.0f);
  assert_true(*g.value(clip.inputs[2]).constant.as<float>() == 2.0f);
  assert_string_not_equal(g.value(clip.inputs[1]).name.c_str(), "clip_input1");

  const std::string nearest = write([](pbf_writer &a) {
    a.add_string(f::name, "mode");
    a.add_bytes(f::s, "nearest");
    a.add_enum(f::type, 3);
  });
  const graph::Graph upsampled = parse(ModelText{
      .opset = 9,
      .nodes = {{"Upsample", {"x", "scales"}, {"y"}, "up", "", {nearest}}},
      .initializers = {float_tensor("scales", {4}, {1, 1, 2, 2})},
      .shape = {1, 1, 2, 2}}.bytes());
  assert_string_equal(upsampled.nodes[0].op->name, "Resize");
}

void nodes_get_unique_names(void **) {
  const graph::Graph g = parse(ModelText{.nodes = {{"Relu", {"x"}, {"a"}},
                                                   {"Relu", {"a"}, {"b"}, "same"},
                                                   {"Relu", {"b"}, {"c"}, "same"},
                                                   {"Relu", {"c"}, {"y"}, "Relu_0"}}}
                                   .bytes());
  assert_string_equal(g.nodes[0].name.c_str(), "Relu_0_1");
  assert_string_equal(g.nodes[1].name.c_str(), "same");
  assert_string_equal(g.nodes[2].name.c_str(), "same_1");
  assert_string_equal(g.nodes[3].name.c_str(), "Relu_0");
}

void nodes_in_any_order(void **) {
  const graph::Graph g = parse(ModelText{
      .nodes = {{"Relu", {"a"}, {"y"}, "second"}, {"Relu", {"x"}, {"a"}, "first"}},
      .shape = {-1, 2}}.bytes());
  assert_string_equal(g.nodes[0].name.c_str(), "first");
  assert_int_equal((*g.value(g.inputs[0]).shape)[0], -1);
}

void absent_inputs_and_unread_outputs(void **) {
  const graph::Graph g =
      parse(ModelText{.nodes = {{"Clip", {"x", "", "hi"}, {"a"}}, {"Dropout", {"a", "", ""}, {"y", ""}}},
                      .initializers = {float_tensor("hi", {}, {1}), float_tensor("unused", {1}, {0})}}
                .bytes());
  assert_int_equal(g.nodes[0].inputs[1], graph::kNoValue);
  assert_int_equal(g.nodes[1].inputs.size(), 1);
  assert_int_equal(g.nodes[1].outputs.size(), 1);
  for (const graph::Value &value : g.values) assert_string_not_equal(value.name.c_str(), "unused");
}

void unknown_operators(void **) {
  expect_bad(QTN_EUNSUPPORTED, {"operator Frobnicate", "domain ai.onnx", "opset 17", "\"frob\""},
             {.nodes = {{"Frobnicate", {"x"}, {"y"}, "frob"}}});
  expect_bad(QTN_EUNSUPPORTED, {"operator Relu (domain com.example, not imported)", "\"r\""},
             {.nodes = {{"Relu", {"x"}, {"y"}, "r", "com.example"}}});
  expect_bad(QTN_EUNSUPPORTED, {"Frobnicate (domain ai.onnx, opset 17) of 2 nodes", "Tangle", "of 1 node"},
             {.nodes = {{"Frobnicate", {"x"}, {"a"}}, {"Frobnicate", {"a"}, {"b"}}, {"Tangle", {"b"}, {"y"}}}});
  const std::string subgraph = write([](pbf_writer &a) {
    a.add_string(onnx::field::attribute::name, "then_branch");
    a.add_message(onnx::field::attribute::g, std::string());
    a.add_enum(onnx::field::attribute::type, 5);
  });
  expect_bad(QTN_EFORMAT, {"(If)", "no graph else_branch"}, {.nodes = {{"If", {"x"}, {"y"}, "", "", {subgraph}}}});
}

const std::vector<std::string> kGrid{float_tensor("s", {}, {0.5f}), raw_tensor<std::uint8_t>("z", QTN_UINT8, {}, {3})};

ModelText sigmoid_model(const std::string &domain) {
  return {.nodes = {{"QuantizeLinear", {"x", "s", "z"}, {"q"}},
                    {"QLinearSigmoid", {"q", "s", "z", "s", "z"}, {"y"}, "sigmoid", domain}},
          .initializers = kGrid};
}

void operators_of_onnx_runtime(void **) {
  // Its own domain, and the operator that it is on integers.
  assert_true(op_names(parse(sigmoid_model("com.microsoft").bytes())) ==
              (std::vector<std::string>{"Sigmoid", "QuantizeLinear"}));
  expect_bad(QTN_EUNSUPPORTED, {"operator QLinearSigmoid", "domain ai.onnx", "\"sigmoid\""}, sigmoid_model(""));
  expect_bad(QTN_EUNSUPPORTED, {"operator QLinearSigmoid", "domain com.example"}, sigmoid_model("com.example"));
  expect_bad(QTN_EUNSUPPORTED, {"operator Relu", "domain com.microsoft"},
             {.nodes = {{"Relu", {"x"}, {"y"}, "r", "com.microsoft"}}});
  // What attributes ask for is refused before shapes are known.
  expect_bad(QTN_EUNSUPPORTED, {"node \"a\" (GroupQueryAttention): causal is 2, supported are 0 to 1"},
             {.nodes = {{"GroupQueryAttention", {"x"}, {"y"}, "a", "com.microsoft", {int_attribute("causal", 2)}}}});
  expect_bad(QTN_EUNSUPPORTED, {"node \"m\" (MatMulNBits): weight_prepacked is 1, supported is 0"},
             {.nodes = {{"MatMulNBits",
                         {"x", "x", "x"},
                         {"y"},
                         "m",
                         "com.microsoft",
                         {int_attribute("weight_prepacked", 1)}}}});
  // 16-bit quantization has been written in this domain before ONNX had it.
  const graph::Graph pair =
      parse(ModelText{.nodes = {{"QuantizeLinear", {"x", "s", "z"}, {"q"}, "", "com.microsoft"},
                                {"DequantizeLinear", {"q", "s", "z"}, {"y"}, "", "com.microsoft"}},
                      .initializers = kGrid}
                .bytes());
  assert_true(pair.value(pair.outputs[0]).quantizer != nullptr);
}

void wrong_nodes(void **) {
  expect_bad(QTN_EFORMAT, {"\"relu\"", "Relu", "inputs"}, {.nodes = {{"Relu", {"x", "x", "x"}, {"y"}, "relu"}}});
  expect_bad(QTN_EFORMAT, {"\"relu\"", "Relu"}, {.nodes = {{"Relu", {}, {"y"}, "relu"}}});
  expect_bad(QTN_EFORMAT, {"\"add\"", "input 0"}, {.nodes = {{"Add", {"", "x"}, {"y"}, "add"}}});
  expect_bad(QTN_EFORMAT, {"\"relu\"", "outputs"}, {.nodes = {{"Relu", {"x"}, {"y", "z"}, "relu"}}});
  expect_bad(QTN_EFORMAT, {"\"relu\"", "no outputs"}, {.nodes = {{"Relu", {"x"}, {}, "relu"}}});
  expect_bad(QTN_EFORMAT, {"\"relu\"", "\"slope\""},
             {.nodes = {{"Relu", {"x"}, {"y"}, "relu", "", {int_attribute("slope", 1)}}}});
}

void shapes_that_do_not_fit(void **) {
  expect_bad(QTN_ESHAPE, {"\"add\"", "1x2", "3"},
             {.nodes = {{"Add", {"x", "w"}, {"y"}, "add"}}, .initializers = {float_tensor("w", {3}, {1, 2, 3})}});
}

void wrong_wiring(void **) {
  expect_bad(QTN_EFORMAT, {"\"relu\"", "\"nothing\""}, {.nodes = {{"Relu", {"nothing"}, {"y"}, "relu"}}});
  expect_bad(
      QTN_EFORMAT, {"cycle"},
      {.nodes = {{"Add", {"x", "b"}, {"a"}, "one"}, {"Relu", {"a"}, {"b"}, "two"}, {"Relu", {"b"}, {"y"}, "three"}}});
  expect_bad(QTN_EFORMAT, {"\"y\"", "made by no node"}, {.nodes = {{"Relu", {"x"}, {"z"}}}});
  expect_bad(QTN_EFORMAT, {"\"y\" is made twice"}, {.nodes = {{"Relu", {"x"}, {"y"}}, {"Tanh", {"x"}, {"y"}}}});
  expect_bad(QTN_EFORMAT, {"\"x\" is made twice"}, {.nodes = {{"Relu", {"x"}, {"x"}}}, .outputs = {"x"}});
  expect_bad(
      QTN_EFORMAT, {"\"w\" is made twice"},
      {.nodes = {{"Relu", {"x"}, {"y"}}}, .initializers = {float_tensor("w", {1}, {0}), float_tensor("w", {1}, {0})}});
  expect_bad(QTN_EFORMAT, {"no outputs"}, {.nodes = {{"Relu", {"x"}, {"y"}}}, .outputs = {}});
}

void wrong_inputs(void **) {
  ModelText packed = relu_model();
  packed.input_type = QTN_INT4;
  expect_bad(QTN_EDTYPE, {"Relu", "x is int4"}, packed);
  ModelText none = relu_model();
  none.input_type = 0;
  expect_bad(QTN_EFORMAT, {"input \"x\"", "no element type"}, none);
  ModelText high = relu_model();
  high.shape.assign(9, 1);
  expect_bad(QTN_EUNSUPPORTED, {"\"x\"", "rank 9"}, high);
}

void files_that_are_none(void **) {
  const TemporaryFolder folder;
  expect_error(QTN_EIO, {"absent.onnx", "No such file"}, [&] { onnx::load(folder.file("absent.onnx")); });
  expect_error(QTN_EIO, {folder.path(), "Is a directory"}, [&] { onnx::load(folder.path()); });
  expect_error(QTN_EIO, {"No such file"}, [&] { onnx::load(""); });
  expect_error(QTN_EFORMAT, {"empty.onnx is not a valid ONNX file", "empty"},
               [&] { onnx::load(folder.put("empty.onnx", "")); });
  assert_int_equal(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_error(QTN_EIO, {"not a regular file"}, [&] { onnx::load(folder.file("pipe")); });
  if (geteuid() != 0) {
    chmod(folder.put("secret.onnx", "x").c_str(), 0);
    expect_error(QTN_EIO, {"secret.onnx", "Permission denied"}, [&] { onnx::load(folder.file("secret.onnx")); });
  }
  const std::string path = folder.put("text.onnx", "this is not a model, it is a sentence");
  expect_error(QTN_EFORMAT, {"text.onnx is not a valid ONNX file"}, [&] { onnx::load(path); });
}

std::string rich_model() {
  return ModelText{.nodes = {{"Conv", {"x", "w", "b"}, {"c"}, "conv"},
                             {"Relu", {"c"}, {"r"}},
                             {"QuantizeLinear", {"r", "s", "z"}, {"q"}},
                             {"DequantizeLinear", {"q", "s", "z"}, {"d"}},
                             {"Softmax", {"d"}, {"y"}, "", "", {int_attribute("axis", 1)}}},
                   .initializers = {float_tensor("w", {1, 1, 1, 1}, {2}), float_tensor("b", {1}, {1}),
                                    float_tensor("s", {}, {0.5f}), raw_tensor<std::uint8_t>("z", QTN_UINT8, {}, {3})},
                   .shape = {-1, 1, 2, 2}}
      .bytes();
}

/// Reads damaged bytes; the only acceptable ends are a graph and an Error.
void read_whatever(const std::string &bytes, std::size_t &good) {
  try {
    parse(bytes);
    ++good;
  } catch (const Error &e) {
    if (std::string(e.what()).find('\n') != std::string::npos) fail_test("more than one line: ", e.what());
  }
}

void truncated_anywhere(void **) {
  const std::string whole = rich_model();
  std::size_t good = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) read_whatever(whole.substr(0, size), good);
  // A protobuf may end after any of its fields, but the opset comes last here.
  assert_int_equal(good, 0);
  read_whatever(whole, good);
  assert_int_equal(good, 1);
}

void damaged_anywhere(void **) {
  const std::string whole = rich_model();
  std::mt19937 engine(1);
  std::size_t good = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      read_whatever(bytes, good);
    }
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (unsigned n = 1 + engine() % 4; n > 0; --n) bytes[engine() % bytes.size()] = static_cast<char>(engine());
    read_whatever(bytes, good);
  }
  assert_true(good > 0);
}

void random_bytes(void **) {
  std::mt19937 engine(2);
  std::size_t good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(1 + engine() % 200, '\0');
    for (char &byte : bytes) byte = static_cast<char>(engine());
    read_whatever(bytes, good);
  }
  assert_int_equal(good, 0);
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::opsets),
      cmocka_unit_test(qtn::other_domains_do_no_harm),
      cmocka_unit_test(qtn::old_forms_are_rewritten),
      cmocka_unit_test(qtn::nodes_get_unique_names),
      cmocka_unit_test(qtn::nodes_in_any_order),
      cmocka_unit_test(qtn::absent_inputs_and_unread_outputs),
      cmocka_unit_test(qtn::unknown_operators),
      cmocka_unit_test(qtn::operators_of_onnx_runtime),
      cmocka_unit_test(qtn::wrong_nodes),
      cmocka_unit_test(qtn::shapes_that_do_not_fit),
      cmocka_unit_test(qtn::wrong_wiring),
      cmocka_unit_test(qtn::wrong_inputs),
      cmocka_unit_test(qtn::files_that_are_none),
      cmocka_unit_test(qtn::truncated_anywhere),
      cmocka_unit_test(qtn::damaged_anywhere),
      cmocka_unit_test(qtn::random_bytes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
