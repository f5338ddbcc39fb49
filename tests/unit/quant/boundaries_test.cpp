// SPDX-License-Identifier: Apache-2.0
// Grids by hand: "quantize" of a tensor and "quantize_outputs" of nodes, and what they pull in.
#include "awkward_networks.hpp"
#include "golden_network.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"
#include "onnx/onnx.hpp"
#include "quant/calibrate.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

const Shape kImage{1, 4, 6, 6};
const Attrs kQuantize = attrs({{"quantize", std::int64_t{1}}});
const Attrs kOutputs = attrs({{"quantize_outputs", std::int64_t{1}}});

Config with(std::initializer_list<std::pair<const char *, const Attrs *>> rules, const char *recipe = "onnx") {
  Config config(recipe);
  for (const auto &[selector, settings] : rules) config.set(selector, settings);
  return config;
}

const Config kByTensor = with({{"tensor:y", &kQuantize}}), kByNodes = with({{"*", &kOutputs}});

/// The answers of a model, which both engines agree on to the bit.
std::vector<float> answers(const graph::Graph &g, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  const auto native = float_values(runtime::Session(g, {}).run(inputs)[0], "y");
  const auto reference = float_values(graph::evaluate(g, std::span(&x, 1))[0], "y");
  assert_int_equal(native.size(), reference.size());
  for (std::size_t i = 0; i < native.size(); ++i)
    if (native[i] != reference[i]) fail_test("y[", i, "] is ", native[i], ", of the reference engine ", reference[i]);
  return native;
}

/// The same as a file of each format says it.
std::vector<graph::Graph> read_again(const graph::Graph &g) {
  std::vector<graph::Graph> graphs;
  for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
    const std::string file = onnx::serialize(g, {.format = format});
    graphs.push_back(onnx::parse(std::as_bytes(std::span(file)), ""));
  }
  return graphs;
}

void expect_same_from_files(const graph::Graph &g, const Tensor &x) {
  const std::vector<float> want = answers(g, x);
  for (const graph::Graph &read : read_again(g)) assert_true(answers(read, x) == want);
}

/// Outputs of quantize_static are on a grid: so are ours where the configuration says so, and equal.
void equals_onnxruntime(void **) {
  for (const char *path : {"ptq.json", "ptq_concat.json"}) {
    const auto file = golden(cat("quant/", path));
    assert_null(value_named(convert(golden_network(file, Config("onnx")), nullptr), "y").quantizer.get());
    for (const Config &config : {kByTensor, kByNodes}) {
      const graph::Graph g = convert(golden_network(file, config), nullptr);
      for (const auto &[name, want] : file.at("activations").items()) {
        const QuantizerPtr &q = value_named(g, name == "y_QuantizeLinear_Input" ? "y" : name).quantizer;
        if (!q) fail_test(path, ": ", name, " is not quantized");
        expect_equal(name + " scale", q->scales(), numbers(want.at("scale")));
        expect_equal(name + " zero point", as_doubles(q->zero_points()), numbers(want.at("zero_point")));
      }
      for (const graph::Node &node : g.nodes) assert_true(graph::integer_form(g, node) != graph::IntegerForm::none);
      for (std::size_t i = 0; i < file.at("samples").size(); ++i) {
        const Tensor x = float_tensor(file.at("samples")[i]);
        expect_equal(cat(path, " y of sample ", i), as_doubles(answers(g, x)), numbers(file.at("outputs")[i]));
        expect_same_from_files(g, x);
      }
    }
  }
}

/// A converted model has the grid in memory; a file has the operator that writes its integers.
void files_say_so(void **) {
  const auto file = golden("quant/ptq.json");
  const auto holds = [](const std::string &bytes, const char *text) { return bytes.find(text) != std::string::npos; };
  const graph::Graph g = convert(golden_network(file, kByTensor), nullptr);
  const std::string qdq = onnx::serialize(g, {}), integers = onnx::serialize(g, {.format = onnx::Format::qoperator});
  assert_true(holds(qdq, "y_QuantizeLinear") && holds(qdq, "y_DequantizeLinear"));
  assert_true(holds(integers, "QGemm") && holds(integers, "y_scale") && !holds(integers, "y_QuantizeLinear"));
  const graph::Graph read = onnx::parse(std::as_bytes(std::span(qdq)), "");
  const graph::Value &y = read.value(read.outputs[0]);
  assert_string_equal(y.name.c_str(), "y");
  assert_true(y.quantizer && *y.quantizer == *value_named(g, "y").quantizer);
}

GraphBuilder small() { return std::move(GraphBuilder().input("x", kImage).conv("a", "x", "u", 4, 4)); }

void a_product_at_the_end(void **) {
  const auto g = small().conv("b", "u", "y", 4, 4).build({"y"});
  for (const Config &config : {kByTensor, kByNodes, with({{"op:Conv", &kOutputs}}), with({{"name:b*", &kOutputs}}),
                               with({{"node:b", &kOutputs}})}) {
    const PreparedModel p = prepare(g, config);
    expect_names(quantized_values(p), {"x", "u", "y"});
    expect_names(integer_nodes(p), {"a", "b"});
  }
  expect_names(quantized_values(prepare(g, with({{"name:a", &kOutputs}}))), {"x", "u"});
}

/// Pointwise nodes before the grid compute in integers, back to the products and inputs that they read.
void pulls_in_pointwise_nodes(void **) {
  const auto g = small()
                     .node("Add", "add", {"u", "x"}, {"v"})
                     .node("Tanh", "tanh", {"v"}, {"w"})
                     .node("Mul", "mul", {"v", "w"}, {"y"})
                     .build({"y"});
  expect_names(quantized_values(prepare(g, Config("onnx"))), {"x"});
  const PreparedModel whole = prepare(g, kByNodes);
  expect_names(quantized_values(whole), {"x", "u", "v", "y"});  // y is a function of v
  expect_names(integer_nodes(whole), {"a", "add", "mul"});
  // A grid in the middle pulls in what is before it, not what is behind.
  const PreparedModel half = prepare(g, with({{"tensor:v", &kQuantize}}));
  expect_names(quantized_values(half), {"x", "u", "v"});
  expect_names(integer_nodes(half), {"a", "add"});
}

/// What a node makes in float is rounded for products alone: a residual connection keeps it as it is, unless a rule
/// names the tensor.
void rounding_is_for_products(void **) {
  const auto g = small()
                     .node("Softmax", "softmax", {"u"}, {"v"})
                     .conv("b", "v", "w", 4, 4)
                     .node("Add", "add", {"v", "w"}, {"y"})
                     .build({"y"});
  const auto operand = [](const graph::Graph &of, const char *name) -> const graph::Value & {
    return of.value(std::ranges::find(of.nodes, name, &graph::Node::name)->inputs[0]);
  };
  const auto converted = [&](const Config &config) {
    PreparedModel p = prepare(g, config);
    expect_names(quantized_values(p), {"x", "v"});
    const Tensor x = GraphBuilder::ramp(kImage), *inputs[] = {&x};
    calibrate(p, inputs);
    return convert(p, nullptr);
  };
  const graph::Graph apart = converted(Config("onnx"));
  assert_string_equal(operand(apart, "b").name.c_str(), "v");
  assert_non_null(operand(apart, "b").quantizer.get());
  assert_string_equal(operand(apart, "add").name.c_str(), "v_float");
  assert_null(operand(apart, "add").quantizer.get());
  expect_same_from_files(apart, GraphBuilder::ramp(kImage));

  const Attrs one = attrs({{"observer", std::string("minmax")}});
  const graph::Graph named = converted(with({{"tensor:v", &one}}));
  assert_non_null(operand(named, "add").quantizer.get());
}

/// What moves elements joins the group of what it moves; in front of it, a grid pulls it in only where it asks.
void moving_nodes_share_the_grid(void **) {
  const auto g = small().node("Flatten", "flatten", {"u"}, {"y"}).build({"y"});
  for (const Config &config : {kByTensor, kByNodes}) {
    const PreparedModel p = prepare(g, config);
    expect_names(integer_nodes(p), {"a", "flatten"});
    assert_int_equal(p.placement.groups.size(), 2);
    assert_int_equal(p.placement.groups[1].members.size(), 2);
    assert_int_equal(p.placement.groups[1].sources.size(), 1);
  }
  const PreparedModel before = prepare(g, with({{"tensor:u", &kQuantize}}));
  expect_names(quantized_values(before), {"x", "u"});
  expect_names(integer_nodes(before), {"a"});
}

/// A part that is an output keeps its own grid beside that of what a Concat makes of it.
void joined_outputs(void **) {
  const auto g =
      small().conv("b", "x", "v", 4, 4).node("Concat", "cat", {"u", "v"}, {"y"}, attrs({{"axis", std::int64_t{1}}}));
  const PreparedModel p = prepare(GraphBuilder(g).build({"y", "u"}), kByNodes);
  expect_names(integer_nodes(p), {"a", "b", "cat"});
  const auto group = [&](const char *name) {
    return p.placement.group[static_cast<std::size_t>(&value_named(p.graph, name) - p.graph.values.data())];
  };
  assert_true(group("v") == group("y") && group("u") != group("y") && group("u") >= 0);
}

/// Nodes without an integer form are not pulled in: their result is rounded.
void behind_nodes_in_float(void **) {
  const auto g = small().node("Softmax", "softmax", {"u"}, {"y"}).build({"y"});
  const PreparedModel p = prepare(g, kByNodes);
  expect_names(quantized_values(p), {"x", "y"});
  expect_names(integer_nodes(p), {"a"});
  const auto between = prepare(g, with({{"tensor:u", &kQuantize}}));
  expect_names(quantized_values(between), {"x", "u"});
  const auto image = GraphBuilder().input("x", kImage).node("Softmax", "softmax", {"x"}, {"y"}).build({"y"});
  expect_names(quantized_values(prepare(image, with({{"tensor:x", &kQuantize}}))), {"x"});
}

/// Whether a tensor is integers says nothing of its grid: a known one stays known.
void known_grids_stay_known(void **) {
  const auto g = small().node("Sigmoid", "sigmoid", {"u"}, {"y"}).build({"y"});
  const auto fixed = [&](const Config &config) {
    const PreparedModel p = prepare(g, config);
    const QuantizerPtr q = p.placement.groups.back().fixed;
    return q ? q->scales()[0] : 0.0;
  };
  assert_true(fixed(with({{"tensor:y", &kQuantize}}, "fbgemm")) == 1.0 / 256);
  assert_true(fixed(with({{"*", &kOutputs}}, "fbgemm")) == 1.0 / 256);
  const Attrs observed = attrs({{"quantize", std::int64_t{1}}, {"observer", "minmax"}});
  assert_true(fixed(with({{"tensor:y", &observed}}, "fbgemm")) == 0);
  const Attrs given = attrs({{"quantize", std::int64_t{1}}, {"observer", "fixed"}, {"min", 0.0}, {"max", 2.0}});
  assert_true(fixed(with({{"tensor:y", &given}}, "fbgemm")) == static_cast<float>(2.0 / 127));
}

/// Between nodes that the configuration leaves in float, the settings are those for all nodes.
void islands_in_float(void **) {
  const auto g = small().conv("b", "u", "v", 4, 4).conv("c", "v", "w", 4, 4).conv("d", "w", "y", 4, 4).build({"y"});
  const Attrs mse = attrs({{"observer", "mse"}}), moving = attrs({{"observer", "moving_average"}});
  const Config inside =
      with({{"*", &mse}, {"op:Conv", &moving}, {"node:b", nullptr}, {"node:c", nullptr}, {"tensor:v", &kQuantize}});
  PreparedModel p = prepare(g, inside);
  expect_names(quantized_values(p), {"x", "v", "w"});
  expect_names(integer_nodes(p), {"a", "d"});
  for (std::size_t i = 0; i < p.observers.size(); ++i)
    assert_true(p.observers[i]->kind() ==
                (p.graph.value(p.placement.groups[i].members[0]).name == "v" ? "mse" : "moving_average"));
  const Config at_its_end = with({{"node:d", nullptr}, {"tensor:y", &kQuantize}});
  const Config all = with({{"*", nullptr}, {"tensor:u", &kQuantize}, {"tensor:y", &kQuantize}});
  expect_names(quantized_values(prepare(g, at_its_end)), {"x", "u", "v", "y"});
  expect_names(quantized_values(prepare(g, all)), {"u", "y"});
  expect_names(integer_nodes(prepare(g, all)), {});
  const Tensor x = GraphBuilder::ramp(kImage);
  for (const Config &config : {inside, at_its_end, all}) {
    PreparedModel island = prepare(g, config);
    calibrate_on(island, x);
    expect_same_from_files(convert(island, nullptr), x);
  }
  // Nodes in float give no grids to what they make, even where all nodes are asked to.
  expect_names(quantized_values(prepare(g, with({{"*", &kOutputs}, {"node:d", nullptr}}))), {"x", "u", "v"});
}

/// Answers are on the grid, of every type that activations have.
void answers_are_on_the_grid(void **) {
  const auto g = small().node("Add", "add", {"u", "x"}, {"y"}).build({"y"});
  const Tensor x = GraphBuilder::ramp(kImage);
  for (const char *dtype : {"uint8", "int8", "int16"}) {
    const Attrs of_y = attrs({{"quantize", std::int64_t{1}}, {"activation_dtype", dtype}});
    PreparedModel p = prepare(g, with({{"tensor:y", &of_y}}));
    calibrate_on(p, x);
    const graph::Graph converted = convert(p, nullptr);
    const QuantizerPtr q = value_named(converted, "y").quantizer;
    assert_string_equal(dtype_name(q->dtype()), dtype);
    const std::vector<float> y = answers(converted, x);
    const Tensor real = Tensor::from<float>(QTN_FLOAT32, kImage, y);
    assert_true(float_values(dequantize(quantize(real, q)), "y") == y);
    expect_same_from_files(converted, x);
  }
  const Attrs few = attrs({{"quantize_outputs", std::int64_t{1}}, {"activation_bits", std::int64_t{3}}});
  PreparedModel p = prepare(g, with({{"*", &few}}));
  calibrate_on(p, x);
  const std::vector<float> y = answers(convert(p, nullptr), x);
  assert_int_equal(std::set<float>(y.begin(), y.end()).size(), 8);
  expect_same_from_files(convert(p, nullptr), x);
}

/// An input that is handed through, an output by two names, one that is known from shapes, one without elements.
void awkward_outputs(void **) {
  const Tensor x = GraphBuilder::ramp(kImage);
  const auto through = small().build({"u", "x"});
  PreparedModel p = prepare(through, with({{"*", &kOutputs}, {"tensor:x", &kQuantize}}));
  expect_names(quantized_values(p), {"x", "u"});
  calibrate_on(p, x);
  expect_same_from_files(convert(p, nullptr), x);
  const auto twice = small().node("Identity", "same", {"u"}, {"y"}).build({"y", "u"});
  for (const Config &config : {kByTensor, kByNodes}) {
    PreparedModel both = prepare(twice, config);
    assert_true(quantized_values(both).contains("y"));
    calibrate_on(both, x);
    expect_same_from_files(convert(both, nullptr), x);
  }
  const auto sizes = small()
                         .node("Shape", "shape", {"u"}, {"s"})
                         .node("Cast", "cast", {"s"}, {"f"}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}))
                         .node("Sqrt", "sqrt", {"f"}, {"y"})
                         .build({"y", "u"});
  PreparedModel known = prepare(sizes, kByNodes);
  assert_true(quantized_values(known).contains("y"));
  calibrate_on(known, x);
  expect_same_from_files(convert(known, nullptr), x);
  const auto empty = GraphBuilder().input("x", {0, 4}).node("Softmax", "softmax", {"x"}, {"y"}).build({"y"});
  PreparedModel nothing = prepare(empty, kByNodes);
  calibrate_on(nothing, Tensor(QTN_FLOAT32, {0, 4}));
  expect_error(QTN_ESTATE, "calibration brought no data to tensor \"y\"", [&] { convert(nothing, nullptr); });
}

/// Any activation of any network may get a grid: what is asked for is there, and the engines and files agree.
void anywhere(void **) {
  constexpr const char *kRecipes[] = {"onnx", "fbgemm", "qnnpack", "nvidia", "tflite"};
  std::size_t asked = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const AwkwardNetwork network(seed, static_cast<Flaw>(seed % static_cast<unsigned>(Flaw::count)));
    const char *recipe = kRecipes[seed % std::size(kRecipes)];
    const PreparedModel plain = prepare(network.graph(), Config(recipe));
    Config config = with({{"*", &kOutputs}}, recipe);
    Names names;
    for (const graph::Node &node : plain.graph.nodes) {
      if ((asked + seed) % 4 == 0) config.set("node:" + node.name, nullptr);
      for (const graph::ValueId v : node.outputs)
        if (++asked % 3 == 0) names.insert(plain.graph.value(v).name);
    }
    for (const std::string &name : names) config.set("tensor:" + name, &kQuantize);
    PreparedModel p = prepare(network.graph(), config);
    const Names quantized = quantized_values(p);
    for (const std::string &name : names) assert_true(quantized.contains(name));
    const Samples samples = network.samples(3, seed);
    calibrate_all(p, samples);
    expect_same_from_files(convert(p, nullptr), samples.read(0)[0]);
  }
  assert_true(asked > 100);
}

void unasked_again(void **) {
  const auto g = small().conv("b", "u", "v", 4, 4).conv("c", "u", "y", 4, 4).build({"v", "y"});
  const Attrs no = attrs({{"quantize", std::int64_t{0}}}), none = attrs({{"quantize_outputs", std::int64_t{0}}});
  expect_names(quantized_values(prepare(g, kByNodes)), {"x", "u", "v", "y"});
  expect_names(quantized_values(prepare(g, with({{"*", &kOutputs}, {"tensor:v", &no}}))), {"x", "u", "y"});
  expect_names(quantized_values(prepare(g, with({{"*", &kOutputs}, {"node:b", &none}}))), {"x", "u", "y"});
  expect_names(quantized_values(prepare(g, with({{"tensor:v", &kQuantize}, {"tensor:v", &no}}))), {"x", "u"});
  // A node that reads it as integers still has it so.
  expect_names(quantized_values(prepare(g, with({{"tensor:u", &no}}))), {"x", "u"});
}

void what_is_refused(void **) {
  const Tensor ones = Tensor::from<float>(QTN_FLOAT32, {4}, std::vector<float>(4, 1.0f));
  const auto g = small()
                     .constant("ones", ones)
                     .node("BatchNormalization", "norm", {"u", "ones", "ones", "ones", "ones"}, {"n"})
                     .node("Relu", "relu", {"n"}, {"r"})
                     .conv("b", "r", "y", 4, 4)
                     .node("ArgMax", "best", {"y"}, {"i"})
                     .build({"y", "i"});
  const auto refused = [&](const char *selector, const Attrs &settings, const char *message) {
    expect_error(QTN_EINVAL, message, [&] { prepare(g, with({{selector, &settings}})); });
  };
  refused("tensor:yy", kQuantize,
          "config: selector \"tensor:yy\": \"quantize\": no activation has this name; nearest are: y ");
  refused("tensor:i", kQuantize,
          "\"tensor:i\": \"quantize\": this tensor holds int64, only activations of float32 become integers");
  refused("tensor:b.weight", kQuantize, "this is a constant; weights become integers with the node that reads them");
  refused("tensor:n", kQuantize,
          "\"tensor:n\": \"quantize\": no node makes this activation any more: \"relu\" became part of \"a\"");
  refused("tensor:u", kQuantize, "no node makes this activation any more: \"norm\" became part of \"a\"");
  refused("tensor:y", attrs({{"observer", "mse"}}),
          "\"tensor:y\": no activation of this name becomes integers; this one does where \"quantize\" is 1");
  refused(
      "node:a", kOutputs,
      "config: selector \"node:a\": \"quantize_outputs\": this node makes no output of the model that holds float32; "
      "\"quantize\" of \"tensor:r\" is for other activations");
  refused("node:best", kOutputs, "makes no output of the model that holds float32");
  Config config("onnx");
  expect_error(QTN_EINVAL, "unknown attribute \"quantize\"", [&] { config.set("node:b", &kQuantize); });
  expect_error(QTN_EINVAL, "unknown attribute \"quantize_outputs\"", [&] { config.set("tensor:y", &kOutputs); });
}

/// Integers that the file makes itself, and reads as an output, too: memory has the grids that a reader finds.
void pairs_of_the_file(void **) {
  graph::Graph g = GraphBuilder()
                       .input("x", kImage)
                       .constant("s", Tensor::scalar(0.03f))
                       .constant("z", Tensor::from<std::int8_t>(QTN_INT8, {}, std::vector<std::int8_t>{0}))
                       .node("QuantizeLinear", "q", {"x", "s", "z"}, {"integers"})
                       .node("DequantizeLinear", "d", {"integers", "s", "z"}, {"real"})
                       .node("ReduceMean", "m", {"real"}, {"y"})
                       .build({"y", "integers"});
  PreparedModel p = prepare(g, kByTensor);
  const Tensor x = GraphBuilder::ramp(kImage);
  const Tensor *inputs[] = {&x};
  calibrate(p, inputs);
  const graph::Graph made = convert(p, nullptr);
  const auto grid = [](const graph::Graph &of) { return value_named(of, "real").quantizer; };
  assert_true(grid(made) && value_named(made, "y").quantizer);
  for (const graph::Graph &read : read_again(made)) assert_true(grid(read) && *grid(read) == *grid(made));
  expect_same_from_files(made, x);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(equals_onnxruntime),
      cmocka_unit_test(files_say_so),
      cmocka_unit_test(a_product_at_the_end),
      cmocka_unit_test(pulls_in_pointwise_nodes),
      cmocka_unit_test(rounding_is_for_products),
      cmocka_unit_test(moving_nodes_share_the_grid),
      cmocka_unit_test(joined_outputs),
      cmocka_unit_test(behind_nodes_in_float),
      cmocka_unit_test(known_grids_stay_known),
      cmocka_unit_test(islands_in_float),
      cmocka_unit_test(answers_are_on_the_grid),
      cmocka_unit_test(awkward_outputs),
      cmocka_unit_test(anywhere),
      cmocka_unit_test(unasked_again),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(pairs_of_the_file),
  };
  return cmocka_run_group_tests_name("boundaries", tests, nullptr, nullptr);
}
