// SPDX-License-Identifier: Apache-2.0
// The rule of docs/quantization.md on graphs small enough to see it.
#include "graph_builder.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

const Shape kImage{1, 4, 6, 6};

/// Groups as sets of names.
std::set<Names> ties(const PreparedModel &p) {
  std::set<Names> all;
  for (const Group &group : p.placement.groups) {
    Names names;
    for (const graph::ValueId v : group.members) names.insert(p.graph.value(v).name);
    all.insert(names);
  }
  return all;
}

PreparedModel prepared(const graph::Graph &g, const Config &config = Config("onnx")) { return prepare(g, config); }

void last_product_writes_float(void **) {
  const auto p =
      prepared(GraphBuilder().input("x", kImage).conv("a", "x", "u", 4, 4).conv("b", "u", "y", 4, 4).build({"y"}));
  expect_names(quantized_values(p), {"x", "u"});
  expect_names(integer_nodes(p), {"a", "b"});
}

void residual_add(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Relu", "relu", {"u"}, {"v"})
                              .conv("b", "v", "w", 4, 4)
                              .node("Add", "add", {"w", "v"}, {"s"})
                              .conv("c", "s", "y", 4, 4)
                              .build({"y"}));
  expect_names(quantized_values(p), {"x", "v", "w", "s"});
  expect_names(integer_nodes(p), {"a", "b", "add", "c"});
}

void add_at_the_end_is_float(void **) {
  const auto p = prepared(
      GraphBuilder().input("x", kImage).conv("a", "x", "u", 4, 4).node("Add", "add", {"u", "x"}, {"y"}).build({"y"}));
  expect_names(quantized_values(p), {"x"});
  expect_names(integer_nodes(p), {"a"});
}

/// A dense block: what normalizes is read by no node before it. Exporters write constants that are alike once.
void norms_that_stand_alone(void **) {
  const Tensor ones = Tensor::from<float>(QTN_FLOAT32, {8}, std::vector<float>(8, 1.0f));
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Concat", "cat", {"u", "x"}, {"v"}, attrs({{"axis", std::int64_t{1}}}))
                              .constant("ones", ones)
                              .node("Identity", "same", {"ones"}, {"scale"})
                              .node("Identity", "through", {"v"}, {"w"})
                              .node("BatchNormalization", "norm", {"w", "scale", "ones", "ones", "ones"}, {"n"})
                              .node("Relu", "relu", {"n"}, {"r"})
                              .conv("b", "r", "y", 8, 4)
                              .build({"y"}));
  expect_names(quantized_values(p), {"x", "u", "v", "r"});
  expect_names(integer_nodes(p), {"a", "cat", "norm", "b"});
}

/// One before which there is a convolution becomes part of it.
void norms_behind_products(void **) {
  const Tensor ones = Tensor::from<float>(QTN_FLOAT32, {4}, std::vector<float>(4, 1.0f));
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Identity", "through", {"u"}, {"w"})
                              .constant("ones", ones)
                              .node("BatchNormalization", "norm", {"w", "ones", "ones", "ones", "ones"}, {"n"})
                              .conv("b", "n", "y", 4, 4)
                              .build({"y"}));
  expect_names(integer_nodes(p), {"a", "b"});
}

void choices_tie_what_they_choose_from(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .constant("zero", Tensor::scalar(0))
                              .node("Greater", "positive", {"u", "zero"}, {"c"})
                              .conv("b", "x", "v", 4, 4)
                              .node("Where", "where", {"c", "u", "v"}, {"w"})
                              .node("Max", "max", {"w", "v", "zero"}, {"m"})
                              .conv("last", "m", "y", 4, 4)
                              .node("ArgMax", "best", {"y"}, {"i"})
                              .build({"i"}));
  expect_names(quantized_values(p), {"x", "u", "v", "w", "m"});
  expect_names(integer_nodes(p), {"a", "b", "where", "max", "last"});
  assert_true(ties(p) == (std::set<Names>{{"x"}, {"u", "v", "w", "m"}}));
}

/// A choice from operands of two types is left in float, as it has no grid for the halves.
void halves_are_not_activations(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Cast", "cast", {"u"}, {"h"}, attrs({{"to", std::int64_t{QTN_FLOAT16}}}))
                              .node("Max", "max", {"u", "h"}, {"m"})
                              .conv("last", "m", "y", 4, 4)
                              .build({"y"}));
  expect_names(integer_nodes(p), {"a", "last"});
  expect_names(quantized_values(p), {"x", "m"});
}

void comparisons_are_known_without_shapes(void **) {
  GraphBuilder b;
  b.input("x", {-1, -1, 4, 4}).constant("zero", Tensor::scalar(0)).conv("a", "x", "u", 4, 4);
  b.node("Less", "less", {"u", "zero"}, {"c"}).node("Where", "where", {"c", "zero", "u"}, {"w"});
  const auto p = prepared(b.node("ArgMin", "worst", {"w"}, {"i"}).conv("last", "w", "y", 4, 4).build({"y", "i"}));
  expect_names(quantized_values(p), {"x", "u", "w"});
}

void concat_ties(void **) {
  const auto p =
      prepared(GraphBuilder()
                   .input("x", kImage)
                   .conv("a", "x", "u", 4, 4)
                   .conv("b", "x", "v", 4, 2)
                   .node("Concat", "concat", {"u", "v"}, {"w"}, attrs({{"axis", std::int64_t{1}}}))
                   .node("MaxPool", "pool", {"w"}, {"z"}, attrs({{"kernel_shape", std::vector<std::int64_t>{2, 2}}}))
                   .conv("c", "z", "y", 6, 4)
                   .build({"y"}));
  assert_true(ties(p) == (std::set<Names>{{"x"}, {"u", "v", "w", "z"}}));
  const Group &group = p.placement.groups.back();
  assert_int_equal(group.sources.size(), 2);
}

/// What others read as well keeps a grid of its own, and so does what is moved from it.
void concat_leaves_others_apart(void **) {
  const Attrs channels = attrs({{"axis", std::int64_t{1}}});
  const Attrs pool =
      attrs({{"kernel_shape", std::vector<std::int64_t>{2, 2}}, {"strides", std::vector<std::int64_t>{2, 2}}});
  GraphBuilder b;
  b.input("x", kImage).conv("a", "x", "u", 4, 4).node("MaxPool", "pool_u", {"u"}, {"pu"}, pool);
  b.conv("b", "u", "v", 4, 4).node("MaxPool", "pool_v", {"v"}, {"pv"}, pool);
  b.node("Concat", "first", {"pu", "pv"}, {"w"}, channels).conv("c", "w", "s", 8, 4);
  b.node("Concat", "second", {"w", "s"}, {"t"}, channels);
  const graph::Graph inner = b.conv("last", "t", "y", 12, 4).build({"y"});
  const auto p = prepared(inner);
  assert_true(ties(p) == (std::set<Names>{{"x"}, {"u", "pu"}, {"v", "pv", "w"}, {"s", "t"}}));
  for (const Group &group : p.placement.groups) {
    Names sources;
    for (const graph::ValueId v : group.sources) sources.insert(p.graph.value(v).name);
    if (p.graph.value(group.members[0]).name == "v") assert_true(sources == (Names{"v", "w"}));
    if (p.graph.value(group.members[0]).name == "s") assert_true(sources == (Names{"s", "t"}));
  }
  // Training has one grid, and so have networks of few bits: a Concat has nothing to limit its result with.
  const std::set<Names> one{{"x"}, {"u", "pu", "v", "pv", "w", "s", "t"}};
  assert_true(ties(prepare(inner, Config("onnx"), QTN_QAT)) == one);
  Config few("onnx");
  const Attrs four = attrs({{"activation_bits", std::int64_t{4}}});
  few.set("*", &four);
  assert_true(ties(prepared(inner, few)) == one);
}

/// An output of the model is read by the program that runs it; its shape is not an element.
void concat_and_outputs(void **) {
  const Attrs channels = attrs({{"axis", std::int64_t{1}}});
  GraphBuilder b;
  b.input("x", kImage).conv("a", "x", "u", 4, 4).conv("b", "x", "v", 4, 4);
  b.node("Concat", "concat", {"u", "v"}, {"w"}, channels)
      .conv("c", "w", "y", 8, 4)
      .node("Shape", "shape", {"v"}, {"s"});
  assert_true(ties(prepared(b.build({"y", "u", "s"}))) == (std::set<Names>{{"x"}, {"u"}, {"v", "w"}}));
}

void softmax_tail(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("GlobalAveragePool", "gap", {"u"}, {"v"})
                              .node("Flatten", "flat", {"v"}, {"w"})
                              .constant("fc", GraphBuilder::ramp({4, 3}))
                              .node("Gemm", "gemm", {"w", "fc"}, {"s"})
                              .node("Softmax", "softmax", {"s"}, {"y"})
                              .build({"y"}));
  assert_true(ties(p) == (std::set<Names>{{"x"}, {"u"}, {"v", "w"}}));
  expect_names(integer_nodes(p), {"a", "gap", "flat", "gemm"});
}

void moved_for_nobody(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Flatten", "flat", {"u"}, {"v"})
                              .node("Softmax", "softmax", {"v"}, {"y"})
                              .build({"y"}));
  expect_names(quantized_values(p), {"x"});
  expect_names(integer_nodes(p), {"a"});
}

void split_quantizes_all_parts(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Split", "split", {"u"}, {"v", "w"},
                                    attrs({{"axis", std::int64_t{1}}, {"num_outputs", std::int64_t{2}}}))
                              .conv("b", "v", "y", 2, 2)
                              .node("Softmax", "softmax", {"w"}, {"z"})
                              .build({"y", "z"}));
  assert_true(ties(p) == (std::set<Names>{{"x"}, {"u", "v", "w"}}));
}

void squeeze_and_excite(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("GlobalAveragePool", "gap", {"u"}, {"m"})
                              .conv("b", "m", "n", 4, 4)
                              .node("HardSigmoid", "gate", {"n"}, {"o"})
                              .node("Mul", "scale", {"u", "o"}, {"s"})
                              .conv("c", "s", "y", 4, 4)
                              .build({"y"}));
  expect_names(integer_nodes(p), {"a", "gap", "b", "gate", "scale", "c"});
  expect_names(quantized_values(p), {"x", "u", "m", "n", "o", "s"});
}

void float_operator_between(void **) {
  // Softmax makes a float that the next convolution wants in integers; before it no node does.
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .conv("a", "x", "u", 4, 4)
                              .node("Sigmoid", "sigmoid", {"u"}, {"t"})
                              .node("Softmax", "softmax", {"t"}, {"v"}, attrs({{"axis", std::int64_t{1}}}))
                              .conv("b", "v", "y", 4, 4)
                              .build({"y"}));
  expect_names(quantized_values(p), {"x", "v"});
  expect_names(integer_nodes(p), {"a", "b"});
}

/// Behind a layer they are part of its weights.
void constants_beside_activations(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", kImage)
                              .constant("half", floats({}, {0.5f}))
                              .constant("row", GraphBuilder::ramp({1, 4, 1, 1}))
                              .conv("a", "x", "u", 4, 4)
                              .node("Mul", "behind", {"u", "row"}, {"r"})
                              .node("Add", "sum", {"r", "x"}, {"t"})
                              .node("Mul", "by_scalar", {"t", "half"}, {"v"})
                              .conv("b", "v", "w", 4, 4)
                              .node("Add", "again", {"w", "v"}, {"q"})
                              .node("Mul", "by_row", {"q", "row"}, {"s"})
                              .conv("c", "s", "y", 4, 4)
                              .build({"y"}));
  expect_names(integer_nodes(p), {"a", "sum", "by_scalar", "b", "c"});
  expect_names(quantized_values(p), {"x", "r", "t", "v", "s"});
}

void integers_of_shape_are_not_activations(void **) {
  const auto p = prepared(GraphBuilder()
                              .input("x", {-1, 4, 6, 6})
                              .conv("a", "x", "u", 4, 4)
                              .node("Shape", "shape", {"u"}, {"dims"})
                              .constant("first", Tensor::from_ints(std::vector<std::int64_t>{0}))
                              .constant("rest", Tensor::from_ints(std::vector<std::int64_t>{-1}))
                              .node("Gather", "gather", {"dims", "first"}, {"batch"})
                              .node("Concat", "concat", {"batch", "rest"}, {"to"}, attrs({{"axis", std::int64_t{0}}}))
                              .node("Reshape", "reshape", {"u", "to"}, {"v"})
                              .constant("fc", GraphBuilder::ramp({144, 3}))
                              .node("MatMul", "matmul", {"v", "fc"}, {"y"})
                              .build({"y"}));
  assert_true(ties(p) == (std::set<Names>{{"x"}, {"u", "v"}}));
}

void nodes_left_in_float(void **) {
  const auto g = GraphBuilder()
                     .input("x", kImage)
                     .conv("a", "x", "u", 4, 4)
                     .node("MaxPool", "pool", {"u"}, {"v"}, attrs({{"kernel_shape", std::vector<std::int64_t>{2, 2}}}))
                     .conv("b", "v", "w", 4, 4)
                     .conv("c", "w", "y", 4, 4)
                     .build({"y"});
  Config config("onnx");
  config.set("node:b", nullptr);
  expect_names(quantized_values(prepared(g, config)), {"x", "w"});
  expect_names(integer_nodes(prepared(g, config)), {"a", "c"});
  Config no_pool("onnx");
  no_pool.set("op:MaxPool", nullptr);
  assert_true(ties(prepared(g, no_pool)) == (std::set<Names>{{"x"}, {"v"}, {"w"}}));
  Config nothing("onnx");
  nothing.set("*", nullptr);
  expect_names(quantized_values(prepared(g, nothing)), {});
}

void settings_follow_the_maker(void **) {
  const auto g = GraphBuilder().input("x", kImage).conv("a", "x", "u", 4, 4).conv("b", "u", "y", 4, 4).build({"y"});
  Config config("onnx");
  const Attrs mse = attrs({{"observer", "mse"}}), moving = attrs({{"observer", "moving_average"}});
  config.set("node:a", &mse);
  config.set("node:b", &moving);
  const auto p = prepared(g, config);
  assert_true(p.observers[0]->kind() == "mse");  // x: no node makes it, "a" reads it
  assert_true(p.observers[1]->kind() == "mse");
}

/// A name that is not there would be a setting without effect.
void names_must_be_there(void **) {
  const auto g = GraphBuilder()
                     .input("x", kImage)
                     .conv("conv1", "x", "u", 4, 4)
                     .node("Relu", "relu1", {"u"}, {"v"})
                     .conv("conv2", "v", "w", 4, 4)
                     .conv("head", "w", "y", 4, 4)
                     .build({"y"});
  const Attrs mse = attrs({{"observer", "mse"}});
  const auto refused = [&](const char *selector, const char *message) {
    Config config("onnx");
    config.set(selector, &mse);
    expect_error(QTN_EINVAL, message, [&] { prepared(g, config); });
  };
  refused("node:conv", "selector \"node:conv\": no node has this name; nearest are: conv1 conv2 head");
  refused("node:relu1", "selector \"node:relu1\": this node became part of \"conv1\"");
  refused("node:heads", "no node has this name; nearest are: head ");
  refused("tensor:vv", "selector \"tensor:vv\": no activation of this name becomes integers; nearest are: v w x");
  refused("tensor:u", "\"tensor:u\": no activation of this name becomes integers");
  for (const char *selector : {"node:conv1", "tensor:v", "name:relu*", "name:nothing", "op:Softmax"}) {
    Config config("onnx");
    config.set(selector, &mse);
    prepared(g, config);
  }
  Config nothing("onnx");
  nothing.set("*", nullptr);
  nothing.set("tensor:v", &mse);
  expect_error(QTN_EINVAL, "no activation of this name becomes integers", [&] { prepared(g, nothing); });
}

void fixed_outputs(void **) {
  const auto g = GraphBuilder()
                     .input("x", kImage)
                     .node("Sigmoid", "sigmoid", {"x"}, {"u"})
                     .conv("a", "u", "v", 4, 4)
                     .node("Tanh", "tanh", {"v"}, {"w"})
                     .conv("b", "w", "y", 4, 4)
                     .build({"y"});
  const auto p = prepared(g, Config("fbgemm"));
  std::size_t fixed = 0;
  for (const Group &group : p.placement.groups) {
    if (!group.fixed) continue;
    ++fixed;
    const bool tanh = p.graph.value(group.members[0]).name == "w";
    assert_true(group.fixed->scales()[0] == (tanh ? 2.0 / 256 : 1.0 / 256));
    assert_int_equal(group.fixed->zero_point(), tanh ? 128 : 0);
  }
  assert_int_equal(fixed, 2);
  for (const Group &group : prepared(g).placement.groups) assert_null(group.fixed.get());
}

void products_take_one_form(void **) {
  const Tensor row = GraphBuilder::ramp({1, 3});
  const auto p = prepared(GraphBuilder()
                              .input("x", {2, 4})
                              .constant("w", GraphBuilder::ramp({4, 3}))
                              .constant("b", row)
                              .node("MatMul", "matmul", {"x", "w"}, {"u"})
                              .node("Add", "bias", {"u", "b"}, {"v"})
                              .constant("w2", GraphBuilder::ramp({5, 3}))
                              .constant("c", floats({}, {2.0f}))
                              .node("Gemm", "gemm", {"v", "w2", "c"}, {"y"},
                                    attrs({{"alpha", 0.5}, {"beta", 3.0}, {"transB", std::int64_t{1}}}))
                              .build({"y"}));
  expect_names(integer_nodes(p), {"matmul", "gemm"});
  assert_string_equal(node_named(p.graph, "matmul").op->name, "Gemm");
  const graph::Node &gemm = node_named(p.graph, "gemm");
  assert_false(gemm.attrs.has("alpha") || gemm.attrs.has("beta"));
  assert_true(float_values(p.graph.value(gemm.inputs[2]).constant, "bias") == std::vector<float>(5, 6.0f));
  assert_true(float_values(p.graph.value(gemm.inputs[1]).constant, "weight")[0] ==
              GraphBuilder::ramp({1}).as<float>()[0] * 0.5f);
}

void quantized_graph_is_refused(void **) {
  auto g = GraphBuilder().input("x", kImage).conv("a", "x", "y", 4, 4).build({"y"});
  g.values[0].quantizer = std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{1.0},
                                                      std::vector<std::int64_t>{0}, Numerics::onnx);
  expect_error(QTN_EUNSUPPORTED, "quantized already", [&] { prepared(g); });
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(last_product_writes_float),
      cmocka_unit_test(residual_add),
      cmocka_unit_test(add_at_the_end_is_float),
      cmocka_unit_test(norms_that_stand_alone),
      cmocka_unit_test(norms_behind_products),
      cmocka_unit_test(choices_tie_what_they_choose_from),
      cmocka_unit_test(halves_are_not_activations),
      cmocka_unit_test(comparisons_are_known_without_shapes),
      cmocka_unit_test(concat_ties),
      cmocka_unit_test(concat_leaves_others_apart),
      cmocka_unit_test(concat_and_outputs),
      cmocka_unit_test(softmax_tail),
      cmocka_unit_test(moved_for_nobody),
      cmocka_unit_test(split_quantizes_all_parts),
      cmocka_unit_test(squeeze_and_excite),
      cmocka_unit_test(float_operator_between),
      cmocka_unit_test(constants_beside_activations),
      cmocka_unit_test(integers_of_shape_are_not_activations),
      cmocka_unit_test(nodes_left_in_float),
      cmocka_unit_test(settings_follow_the_maker),
      cmocka_unit_test(names_must_be_there),
      cmocka_unit_test(fixed_outputs),
      cmocka_unit_test(products_take_one_form),
      cmocka_unit_test(quantized_graph_is_refused),
  };
  return cmocka_run_group_tests_name("placement", tests, nullptr, nullptr);
}
