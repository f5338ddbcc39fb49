// SPDX-License-Identifier: Apache-2.0
// Operators that opsets write in different ways: what is read from one and written as another computes the same.
#include <cmath>

#include "graph/pipelines.hpp"
#include "onnx/messages.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
using graph::ValueId;

Tensor ramp(const Shape &shape) {
  const Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>((i * 37) % 19) / 9.0f - 1;
  return t;
}

/// One node on x.
graph::Graph network(const char *op, const Shape &x, const std::vector<Tensor> &constants, const Attrs &attrs) {
  graph::Graph g;
  g.name = "one";
  graph::Value input, output;
  input.name = "x", output.name = "y";
  input.dtype = output.dtype = QTN_FLOAT32;
  input.shape = x;
  g.inputs = {g.add_value(input)};
  g.outputs = {g.add_value(output)};
  graph::Node node{"node", ops::find_op(op), attrs, g.inputs, g.outputs, {}};
  for (const Tensor &t : constants) node.inputs.push_back(g.add_constant(cat("c", node.inputs.size()), t));
  g.nodes.push_back(node);
  return g;
}

/// The file of that opset, which must compute what the graph does.
std::string expect_same(const graph::Graph &g, const Shape &shape, int opset) {
  const std::string bytes = onnx::serialize(g, {opset});
  const Tensor x = ramp(shape);
  const Tensor before = graph::evaluate(g, std::span(&x, 1))[0];
  const graph::Graph back = parse(bytes);
  const Tensor after = graph::evaluate(back, std::span(&x, 1))[0];
  if (!equal(before, after)) fail_test("opset ", opset, ": ", describe(after), ", not ", describe(before));
  return bytes;
}

/// What lies in `bytes`.
onnx::GraphProto read_back(const std::string &bytes) {
  return onnx::read_graph(*onnx::read_model({bytes.data(), bytes.size()}).graph);
}

Attrs with(const char *key, Attr value) {
  Attrs attrs;
  attrs.set(key, std::move(value));
  return attrs;
}

void lists_of_names(void **) {
  const Attrs attrs = with("activations", std::string("Relu,Tanh,Softsign"));
  const graph::Graph g = network("LSTM", {2, 1, 3}, {ramp({1, 8, 3}), ramp({1, 8, 2})}, attrs);
  const std::string bytes = expect_same(g, {2, 1, 3}, 21);
  const onnx::GraphProto file = read_back(bytes);
  bool found = false;
  for (const onnx::AttributeProto &proto : file.nodes[0].attributes) {
    protozero::pbf_reader attribute(proto.bytes);
    std::vector<std::string> names;
    int type = 0;
    while (attribute.next())
      if (attribute.tag() == onnx::field::attribute::strings)
        names.push_back(attribute.get_string());
      else if (attribute.tag() == onnx::field::attribute::type)
        type = attribute.get_enum();
      else
        attribute.skip();
    found = found || (type == 8 && names == std::vector<std::string>{"Relu", "Tanh", "Softsign"});
  }
  assert_true(found);
  assert_true(parse(onnx::serialize(g, {21})).nodes[0].attrs.get_strings("activations").size() == 3);

  const auto listing = [](const std::string &name) {
    return write([&](pbf_writer &attribute) {
      attribute.add_string(onnx::field::attribute::name, "activations");
      attribute.add_string(onnx::field::attribute::strings, name);
      attribute.add_enum(onnx::field::attribute::type, 8);
    });
  };
  ModelText model;
  model.shape = {2, 1, 1};
  model.initializers = {float_tensor("w", {1, 1, 1}, {1})};
  model.nodes = {{"RNN", {"x", "w", "w"}, {"y"}, "rnn", "", {listing("Relu")}}};
  assert_string_equal(parse(model.bytes()).nodes[0].attrs.get_string("activations", "").c_str(), "Relu");
  model.nodes[0].attributes = {listing("Re,lu")};
  expect_error(QTN_EUNSUPPORTED, {"\"activations\"", "with commas"}, [&] { parse(model.bytes()); });
}

void scales_of_groups(void **) {
  const Shape x{1, 4, 3};
  const Attrs attrs = with("num_groups", std::int64_t{2});
  const graph::Graph groups = network("GroupNormalization", x, {ramp({2}), ramp({2})}, attrs),
                     channels = network("GroupNormalization", x, {ramp({4}), ramp({4})}, attrs);
  for (const int opset : {18, 20, 21, 25}) expect_same(groups, x, opset);
  for (const int opset : {21, 25}) expect_same(channels, x, opset);
  expect_error(QTN_EUNSUPPORTED, {"opset 20 has no scale and bias for each channel"},
               [&] { onnx::serialize(channels, {20}); });
  expect_error(QTN_EUNSUPPORTED, {"opset 17 has no such operator"}, [&] { onnx::serialize(groups, {17}); });
}

/// By their formulas where an opset has no such operator.
void normalizations_of_rows(void **) {
  const Shape x{2, 3, 8};
  const auto expect_close = [&](const graph::Graph &g, int opset, std::size_t nodes) {
    const Tensor of = ramp(x);
    const graph::Graph back = parse(onnx::serialize(g, {opset}));
    assert_int_equal(back.nodes.size(), nodes);
    const Tensor want = graph::evaluate(g, std::span(&of, 1))[0], got = graph::evaluate(back, std::span(&of, 1))[0];
    assert_true(want.shape() == got.shape());
    for (std::int64_t i = 0; i < want.count(); ++i)
      assert_true(std::fabs(want.as<float>()[i] - got.as<float>()[i]) <= 2e-6f);
  };
  const Attrs attrs = with("epsilon", 1e-3), of_image = with("axis", std::int64_t{1});
  const graph::Graph layer = network("LayerNormalization", x, {ramp({8}), ramp({8})}, attrs),
                     plain = network("LayerNormalization", x, {ramp({8})}, attrs),
                     image = network("LayerNormalization", x, {ramp({8})}, of_image),
                     last = network("LayerNormalization", x, {ramp({8})}, with("axis", std::int64_t{2})),
                     rms = network("RMSNormalization", x, {ramp({8})}, attrs);
  for (const int opset : {13, 16}) {
    expect_close(layer, opset, 9);
    expect_close(plain, opset, 8);
    expect_close(last, opset, 8);
  }
  expect_same(layer, x, 17);
  for (const int opset : {13, 21, 22}) expect_close(rms, opset, 6);
  expect_same(rms, x, 23);
  expect_error(QTN_EUNSUPPORTED, {"opset 16 has no such operator"}, [&] { onnx::serialize(image, {16}); });
  // A constant gets as many roundings as the operator has.
  graph::Graph constant = network("RMSNormalization", x, {ramp({8})}, attrs);
  constant.nodes[0].inputs[0] = constant.add_constant("rows", ramp(x));
  expect_same(constant, x, 21);
}

void renamed_modes(void **) {
  const Shape x{1, 1, 3, 3};
  Tensor grid = ramp({1, 2, 2, 2});
  for (const char *mode : {"linear", "cubic", "nearest"})
    for (const int opset : {16, 19, 20, 25}) {
      const std::string bytes =
          expect_same(network("GridSample", x, {grid}, with("mode", std::string(mode))), x, opset);
      const onnx::GraphProto file = read_back(bytes);
      for (const onnx::AttributeProto &proto : file.nodes[0].attributes)
        if (proto.name == "mode" && std::string_view(mode) == "linear")
          assert_string_equal(std::get<std::string>(onnx::read_attribute(proto, std::string())).c_str(),
                              opset < 20 ? "bilinear" : "linear");
    }
}

void regions_moved_by_half_a_pixel(void **) {
  const Shape x{1, 1, 4, 4};
  const float corners[] = {0, 0, 3, 3};
  const std::int64_t image[] = {0};
  const std::vector<Tensor> region{Tensor::from<float>(QTN_FLOAT32, {1, 4}, corners), Tensor::from_ints(image)};
  const graph::Graph moved = network("RoiAlign", x, region, {});
  expect_same(moved, x, 16);
  expect_error(QTN_EUNSUPPORTED, {"opset 15", "coordinate_transformation_mode"}, [&] { onnx::serialize(moved, {15}); });
  const Attrs attrs = with("coordinate_transformation_mode", std::string("output_half_pixel"));
  for (const int opset : {13, 15, 16, 21}) expect_same(network("RoiAlign", x, region, attrs), x, opset);
}

/// Written as formulas, they are within rounding of what they were, and are named again where sessions run them.
void activations_before_their_operators(void **) {
  const struct {
    const char *op;
    Attrs attrs;
    int since;
  } activations[] = {{"Gelu", {}, 20},      {"Gelu", with("approximate", std::string("tanh")), 20},
                     {"HardSwish", {}, 14}, {"Mish", {}, 18},
                     {"Swish", {}, 24},     {"Swish", with("alpha", 1.702), 24}};
  const Shape shape{2, 50};
  const Tensor x = ramp(shape);
  for (const auto &[op, attrs, since] : activations) {
    const graph::Graph g = network(op, shape, {}, attrs);
    const Tensor want = graph::evaluate(g, std::span(&x, 1))[0];
    graph::Graph back = parse(onnx::serialize(g, {since - 1}));
    assert_true(back.nodes.size() > 1);
    const Tensor got = graph::evaluate(back, std::span(&x, 1))[0];
    for (std::int64_t i = 0; i < x.count(); ++i)
      if (const float a = got.as<float>()[i], b = want.as<float>()[i]; std::fabs(a - b) > 2e-7f)
        fail_test(op, " of ", x.as<float>()[i], " at opset ", since - 1, ": ", a, ", not ", b);
    graph::run_passes(back, graph::Pipeline::execution);
    assert_int_equal(back.nodes.size(), 1);
    assert_string_equal(back.nodes[0].op->name, op);
    assert_int_equal(parse(onnx::serialize(g, {since})).nodes.size(), 1);
  }
}

/// Narrow floats are rounded by the operator once, and so they are by what is written in its place.
void activations_of_halves(void **) {
  const Shape shape{2, 50};
  for (const qdtype dtype : {QTN_FLOAT16, QTN_BFLOAT16})
    for (const char *op : {"Gelu", "HardSwish", "Mish", "Swish"}) {
      graph::Graph g = network(op, shape, {}, {});
      g.value(g.inputs[0]).dtype = g.value(g.outputs[0]).dtype = dtype;
      const Tensor x = from_plain(ramp(shape), dtype), want = graph::evaluate(g, std::span(&x, 1))[0];
      assert_int_equal(want.dtype(), dtype);
      graph::Graph back = parse(onnx::serialize(g, {13}));
      graph::run_passes(back, graph::Pipeline::execution);
      if (!equal(graph::evaluate(back, std::span(&x, 1))[0], want))
        fail_test(op, " of ", dtype_name(dtype), " is another number at opset 13");
    }
}

/// The file has the result where a constant is read: readers would round each operator of the formula.
void activations_of_constants(void **) {
  for (const char *op : {"Gelu", "HardSwish", "Mish", "Swish"}) {
    graph::Graph g = network(op, {2, 50}, {}, {});
    g.nodes[0].inputs = {g.add_constant("constant", ramp({2, 50}))};
    const Tensor x = ramp({2, 50}), want = graph::evaluate(g, std::span(&x, 1))[0];
    graph::Graph back = parse(onnx::serialize(g, {13}));
    assert_int_equal(back.nodes.size(), 1);
    graph::run_passes(back, graph::Pipeline::execution);
    if (!equal(graph::evaluate(back, std::span(&x, 1))[0], want)) fail_test(op, " of a constant is another number");

    const graph::ValueId inner = g.add_value({});
    g.nodes.insert(g.nodes.begin(), {"inner", ops::find_op("Neg"), {}, g.nodes[0].inputs, {inner}, {}});
    g.nodes[1].inputs = {inner};
    assert_int_equal(parse(onnx::serialize(g, {13})).nodes.size(), 1);
  }
}

/// What an attribute has always meant is left out of files of opsets that do not have it; anything else is refused.
void attributes_of_newer_opsets(void **) {
  const struct {
    const char *op, *name;
    int opset;  ///< the last one without
    Attr old, other;
    Shape x;
    std::vector<Tensor> constants;
    Attrs more;
  } cases[] = {
      {"AveragePool", "dilations", 18, Ints{1, 1}, Ints{1, 2}, {1, 1, 4, 4}, {}, with("kernel_shape", Ints{2, 2})},
      {"LpPool", "dilations", 17, Ints{1, 1}, Ints{2, 1}, {1, 1, 4, 4}, {}, with("kernel_shape", Ints{2, 2})},
      {"LpPool", "ceil_mode", 17, std::int64_t{0}, std::int64_t{1}, {1, 1, 4, 4}, {}, with("kernel_shape", Ints{2, 2})},
      {"Reshape", "allowzero", 13, std::int64_t{0}, std::int64_t{1}, {2, 3}, {ints({3, 2})}, {}},
      {"ReduceMax", "noop_with_empty_axes", 17, std::int64_t{0}, std::int64_t{1}, {2, 3}, {ints({1})}, {}},
      {"ScatterElements",
       "reduction",
       15,
       std::string("none"),
       std::string("add"),
       {3},
       {ints({1}), floats({1}, {5})},
       {}},
      {"ScatterND",
       "reduction",
       15,
       std::string("none"),
       std::string("mul"),
       {3},
       {Tensor::from<std::int64_t>(QTN_INT64, {1, 1}, Ints{1}), floats({1}, {5})},
       {}},
      {"Shape", "start", 14, std::int64_t{0}, std::int64_t{1}, {2, 3}, {}, {}},
      {"Resize",
       "keep_aspect_ratio_policy",
       17,
       std::string("stretch"),
       std::string("not_larger"),
       {1, 1, 2, 2},
       {floats({0}, {}), floats({0}, {}), ints({1, 1, 4, 4})},
       with("mode", std::string("nearest"))},
      {"SpaceToDepth",
       "mode",
       27,
       std::string("DCR"),
       std::string("CRD"),
       {1, 1, 2, 2},
       {},
       with("blocksize", std::int64_t{2})},
  };
  for (const auto &c : cases) {
    const auto graph_with = [&](const Attr &value) {
      Attrs attrs = c.more;
      attrs.set(c.name, value);
      return network(c.op, c.x, c.constants, attrs);
    };
    const std::string bytes = onnx::serialize(graph_with(c.old), {c.opset});
    const onnx::GraphProto file = read_back(bytes);
    for (const onnx::AttributeProto &kept : file.nodes.back().attributes)
      if (kept.name == c.name) fail_test(c.op, " of opset ", c.opset, " has ", c.name);
    expect_error(QTN_EUNSUPPORTED,
                 cat("node \"node\" (", c.op, "): opset ", c.opset, " has no attribute \"", c.name, "\""),
                 [&] { onnx::serialize(graph_with(c.other), {c.opset}); });
    onnx::serialize(graph_with(c.other), {c.opset + 1});
  }
}

/// Modes, inputs and operands that only newer opsets have.
void forms_that_older_opsets_lack(void **) {
  const auto refuse = [](const graph::Graph &g, int opset, const std::string &text) {
    expect_error(QTN_EUNSUPPORTED, cat("node \"node\" (", g.nodes[0].op->name, "): opset ", opset, " has no ", text),
                 [&] { onnx::serialize(g, {opset}); });
  };
  refuse(network("Pad", {4}, {ints({1, 1})}, with("mode", std::string("wrap"))), 18, "mode \"wrap\"");
  refuse(network("Pad", {2, 4}, {ints({1, 1}), floats({}, {0}), ints({1})}, {}), 17, "input 3");
  refuse(network("Resize", {1, 1, 2, 2}, {floats({0}, {}), floats({4}, {1, 1, 2, 2})},
                 with("coordinate_transformation_mode", std::string("half_pixel_symmetric"))),
         18, "coordinate_transformation_mode \"half_pixel_symmetric\"");
  for (const char *op : {"ReduceMax", "ReduceL2"}) {
    graph::Graph g = network(op, {2, 3}, {}, {});
    graph::Value axes;
    axes.name = "axes", axes.dtype = QTN_INT64, axes.shape = Shape{1};
    g.inputs.push_back(g.add_value(axes));
    g.nodes[0].inputs.push_back(g.inputs[1]);
    refuse(g, 17, "computed axes");
    onnx::serialize(g, {18});
  }
}

int opset_of(const graph::Graph &g) {
  const std::string bytes = onnx::serialize(g, {});
  return static_cast<int>(*onnx::default_opset(onnx::read_model({bytes.data(), bytes.size()}).opsets));
}

/// A branch that does to x what the network does.
graph::Graph as_branches(const graph::Graph &inside) {
  graph::Graph g = network("If", {2, 3}, {}, {});
  graph::Value which;
  which.name = "which", which.dtype = QTN_BOOL, which.shape = Shape{};
  g.inputs.push_back(g.add_value(which));
  g.nodes[0].inputs = {g.inputs[1], g.inputs[0]};
  g.nodes[0].captured = 1;
  g.nodes[0].bodies.assign(2, std::make_shared<const graph::Graph>(inside));
  return g;
}

/// Unless an opset is asked for: the usual one, the one before it for activations of int8, or the next that has all.
void opset_that_is_chosen(void **) {
  const graph::Graph floats = network("Relu", {2, 3}, {}, {});
  const auto on_grid = [&](qdtype dtype) {
    graph::Graph g = floats;
    g.value(g.inputs[0]).quantizer = per_tensor(dtype, 0.5, 0);
    return g;
  };
  assert_int_equal(opset_of(floats), 21);
  assert_int_equal(opset_of(on_grid(QTN_UINT8)), 21);
  assert_int_equal(opset_of(on_grid(QTN_INT8)), 20);
  assert_int_equal(opset_of(as_branches(on_grid(QTN_UINT8))), 21);
  assert_int_equal(opset_of(as_branches(on_grid(QTN_INT8))), 20);
  // What opset 20 would widen, and what only 21 has.
  graph::Graph mixed = on_grid(QTN_INT8);
  mixed.add_constant("few", Tensor(QTN_INT4, {2, 3}));
  assert_int_equal(opset_of(mixed), 21);
  mixed = on_grid(QTN_INT8);
  mixed.value(mixed.outputs[0]).quantizer = per_tensor(QTN_INT16, 0.5, 0);
  assert_int_equal(opset_of(mixed), 21);
  assert_int_equal(opset_of(network("CumProd", {2, 3}, {ints({0})}, {})), 26);
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {cmocka_unit_test(lists_of_names),
                              cmocka_unit_test(scales_of_groups),
                              cmocka_unit_test(normalizations_of_rows),
                              cmocka_unit_test(renamed_modes),
                              cmocka_unit_test(regions_moved_by_half_a_pixel),
                              cmocka_unit_test(activations_before_their_operators),
                              cmocka_unit_test(activations_of_halves),
                              cmocka_unit_test(activations_of_constants),
                              cmocka_unit_test(attributes_of_newer_opsets),
                              cmocka_unit_test(forms_that_older_opsets_lack),
                              cmocka_unit_test(opset_that_is_chosen)};
  return cmocka_run_group_tests_name("onnx/forms", tests, nullptr, nullptr);
}
