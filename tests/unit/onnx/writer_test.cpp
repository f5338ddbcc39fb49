// SPDX-License-Identifier: Apache-2.0
// Models written: what is in the file, what comes back from it, and files that cannot be written.
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "base/file.hpp"
#include "onnx/messages.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
using graph::kNoValue;
using graph::ValueId;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

ValueId add_value(graph::Graph &g, const std::string &name, const QuantizerPtr &quantizer = nullptr) {
  graph::Value value;
  value.name = name;
  value.dtype = QTN_FLOAT32;
  value.quantizer = quantizer;
  return g.add_value(std::move(value));
}

void add_node(graph::Graph &g, const std::string &name, const char *op, std::vector<ValueId> inputs, ValueId output,
              std::optional<ops::Clamp> clamp = {}, Attrs attrs = {}) {
  g.nodes.push_back({name, ops::find_op(op), std::move(attrs), std::move(inputs), {output}, clamp});
}

Tensor ramp(const Shape &shape) {
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>((i * 37) % 19) / 7.0f - 1.2f;
  return t;
}

Tensor quantized(const Tensor &x, const QuantizerPtr &q) { return quantize(x, q).with_quantizer(q); }

/// x (quantized) -> Conv with int8 weights and int32 bias, clamped -> Softmax -> y (quantized).
graph::Graph quantized_graph(const ops::Clamp &clamp = {0, kInfinity}, Numerics numerics = Numerics::onnx) {
  graph::Graph g;
  g.name = "small";
  const ValueId x = add_value(g, "x", per_tensor(QTN_UINT8, static_cast<float>(0.013), 100, numerics));
  g.value(x).shape = Shape{-1, 2, 4, 4};
  g.inputs = {x};
  const std::vector<double> scales{0.01, 1.0 / 3, 0.002};
  const auto weights = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 0, scales,
                                                   std::vector<std::int64_t>(3, 0), numerics);
  const auto bias =
      std::make_shared<Quantizer>(QTN_INT32, QTN_PER_CHANNEL_SYMMETRIC, 0, std::vector<double>{1e-4, 2e-3, 3e-5},
                                  std::vector<std::int64_t>(3, 0), numerics);
  const ValueId w = g.add_constant("w", quantized(ramp({3, 2, 3, 3}), weights));
  const ValueId b = g.add_constant("b", quantized(ramp({3}), bias));
  const ValueId c = add_value(g, "c", per_tensor(QTN_UINT8, static_cast<float>(0.021), 5, numerics));
  const ValueId y = add_value(g, "y", per_tensor(QTN_UINT8, 1.0f / 256, 0, numerics));
  g.outputs = {y};
  add_node(g, "conv", "Conv", {x, w, b}, c, clamp);
  add_node(g, "softmax", "Softmax", {c}, y);
  return g;
}

std::vector<Tensor> run(const graph::Graph &g) {
  const Tensor x = ramp({1, 2, 4, 4});
  return graph::evaluate(g, std::span(&x, 1));
}

onnx::GraphProto read_back(const std::string &bytes) {
  return onnx::read_graph(*onnx::read_model({bytes.data(), bytes.size()}).graph);
}

std::vector<std::string> ops_in(const std::string &bytes) {
  std::vector<std::string> ops;
  for (const onnx::NodeProto &node : read_back(bytes).nodes) ops.push_back(node.op);
  return ops;
}

void quantized_round_trip(void **) {
  const ops::Clamp clamps[] = {{0, kInfinity}, {0, 6}, {-1, 1}, {-kInfinity, 1}};
  for (const ops::Clamp &clamp : clamps)
    for (const int opset : {13, 17, 21, 25}) {
      const graph::Graph g = quantized_graph(clamp);
      const std::string bytes = onnx::serialize(g, {opset});
      const graph::Graph back = parse(bytes);
      expect_same_bits(run(g), run(back));
      for (const char *name : {"w", "b"}) {
        const graph::Value &was = named(g, name), &is = named(back, name);
        assert_memory_equal(was.constant.data(), is.constant.data(), was.constant.nbytes());
        assert_int_equal(was.quantizer->scheme(), is.quantizer->scheme());
        assert_int_equal(was.quantizer->axis(), is.quantizer->axis());
        for (std::size_t i = 0; i < 3; ++i)
          assert_true(static_cast<float>(was.quantizer->scales()[i]) == static_cast<float>(is.quantizer->scales()[i]));
      }
      for (const char *name : {"x", "c", "y"}) assert_true(*named(g, name).quantizer == *named(back, name).quantizer);
      // Only the order of what the file lists may still change, and not forever.
      const std::string again = onnx::serialize(back, {opset});
      assert_int_equal(again.size(), bytes.size());
      assert_true(onnx::serialize(parse(again), {opset}) == again);
    }
}

void what_a_quantized_file_holds(void **) {
  const std::string bytes = onnx::serialize(quantized_graph(), {});
  assert_true(ops_in(bytes) ==
              (std::vector<std::string>{"DequantizeLinear", "DequantizeLinear", "QuantizeLinear", "DequantizeLinear",
                                        "Conv", "Relu", "QuantizeLinear", "DequantizeLinear", "Softmax",
                                        "QuantizeLinear", "DequantizeLinear"}));
  const onnx::GraphProto proto = read_back(bytes);
  assert_string_equal(proto.inputs[0].name.c_str(), "x");
  assert_int_equal((*proto.inputs[0].shape)[0], -1);
  assert_string_equal(proto.outputs[0].name.c_str(), "y");
  assert_string_equal(proto.nodes.back().outputs[0].c_str(), "y");
  assert_string_equal(proto.nodes[4].name.c_str(), "conv");
  // Weights have zero points, biases do not.
  assert_int_equal(proto.nodes[0].inputs.size(), 3);
  assert_int_equal(proto.nodes[1].inputs.size(), 2);
  assert_true(ops_in(onnx::serialize(quantized_graph({0, 6}), {}))[5] == "Clip");
}

/// Axes of the pairs in a file, "op input axis"; 1 is what a node without the attribute means.
std::vector<std::string> axes_in(const std::string &bytes) {
  std::vector<std::string> axes;
  for (const onnx::NodeProto &node : read_back(bytes).nodes) {
    if (node.op != "QuantizeLinear" && node.op != "DequantizeLinear") continue;
    std::int64_t axis = 1;
    for (const onnx::AttributeProto &attribute : node.attributes)
      if (attribute.name == "axis") axis = std::get<std::int64_t>(onnx::read_attribute(attribute, ""));
    if (axis != 1) axes.push_back(cat(node.op[0], " ", node.inputs[0], " ", axis));
  }
  return axes;
}

/// Both nodes of a pair by channel have its axis, and the file has the opset that was asked for.
void pairs_by_channel(void **) {
  for (const int opset : {13, 21, 25})
    for (const bool in_floats : {false, true}) {
      onnx::SaveOptions options{opset};
      options.weight_pairs = in_floats;
      const std::string bytes = onnx::serialize(quantized_graph(), options);
      assert_int_equal(*onnx::default_opset(onnx::read_model({bytes.data(), bytes.size()}).opsets), opset);
      const auto axes = axes_in(bytes);
      const std::size_t count = in_floats ? 3 : 2;  // the weights are floats, or the integers themselves; the bias
      if (axes.size() != count || !std::ranges::all_of(axes, [](const std::string &s) { return s.ends_with(" 0"); }))
        fail_test("opset ", opset, ": ", axes.size(), " nodes have an axis, first \"", axes.empty() ? "" : axes[0],
                  "\"");
      assert_int_equal(std::ranges::count_if(axes, [](const std::string &s) { return s[0] == 'Q'; }),
                       in_floats ? 1 : 0);
    }
}

/// Without a zero point QuantizeLinear would make uint8.
void activations_keep_their_zero_point(void **) {
  graph::Graph g;
  const ValueId x = add_value(g, "x", per_tensor(QTN_INT32, 0.5, 0)), y = add_value(g, "y");
  g.value(x).shape = Shape{1, 2};
  g.inputs = {x};
  g.outputs = {y};
  add_node(g, "neg", "Neg", {x}, y);
  const std::string bytes = onnx::serialize(g, {});
  for (const std::size_t n : {0, 1}) assert_int_equal(read_back(bytes).nodes[n].inputs.size(), 3);
  assert_true(same_grid(*named(parse(bytes), "x").quantizer, *g.value(x).quantizer));
}

void other_numerics_survive(void **) {
  const graph::Graph g = quantized_graph({0, 6}, Numerics::fbgemm);
  const graph::Graph back = parse(onnx::serialize(g, {}));
  assert_true(*named(back, "c").quantizer == *named(g, "c").quantizer);
  expect_same_bits(run(g), run(back));
  graph::Graph mixed = g;
  mixed.value(mixed.outputs[0]).quantizer = per_tensor(QTN_UINT8, 1.0f / 256, 0);
  expect_error(QTN_EUNSUPPORTED, {"\"y\"", "onnx", "fbgemm"}, [&] { onnx::serialize(mixed, {}); });
}

// What a grid of fewer integers than its type has would be is more than QuantizeLinear can say.
void grids_that_onnx_does_not_have(void **) {
  const auto with_range = [](qdtype dtype, IntegerRange range) {
    graph::Graph g = quantized_graph();
    g.value(g.outputs[0]).quantizer = std::make_shared<Quantizer>(
        dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{0.5}, std::vector<std::int64_t>{0}, Numerics::onnx, 0, range);
    return g;
  };
  const char *text = "ONNX defines [0, 255] for quint8 and [-128, 127] for int8, got ";
  for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
    expect_error(QTN_EUNSUPPORTED, {"\"y\"", cat(text, "[-127, 127]")}, [&] {
      onnx::serialize(with_range(QTN_INT8, {-127, 127}), {.format = format});
    });
    expect_error(QTN_EUNSUPPORTED, {cat(text, "[0, 127]")}, [&] {
      onnx::serialize(with_range(QTN_UINT8, {0, 127}), {.format = format});
    });
  }
  expect_error(QTN_EUNSUPPORTED, {"ONNX defines [0, 65535] for uint16, got [0, 4095]"}, [&] {
    onnx::serialize(with_range(QTN_UINT16, {0, 4095}), {});
  });
  onnx::serialize(with_range(QTN_INT8, {-128, 127}), {});
}

std::vector<std::string> operators(const graph::Graph &g) {
  return ops_in(onnx::serialize(g, {.format = onnx::Format::qoperator}));
}

using Ops = std::vector<std::string>;

void quantized_operators(void **) {
  // Relu ends at the zero point: 5, below which the type goes on.
  const graph::Graph g = quantized_graph({0, kInfinity});
  assert_true(operators(g) == (Ops{"QuantizeLinear", "QLinearConv", "Clip", "DequantizeLinear", "Softmax",
                                   "QuantizeLinear", "DequantizeLinear"}));
  expect_same_bits(run(g), run(parse(onnx::serialize(g, {.format = onnx::Format::qoperator}))));

  graph::Graph whole = quantized_graph({0, kInfinity});
  for (graph::Value &value : whole.values)
    if (value.name == "c") value.quantizer = per_tensor(QTN_UINT8, static_cast<float>(0.021), 0);
  assert_true(operators(whole) == (Ops{"QuantizeLinear", "QLinearConv", "DequantizeLinear", "Softmax", "QuantizeLinear",
                                       "DequantizeLinear"}));
  expect_same_bits(run(whole), run(parse(onnx::serialize(whole, {.format = onnx::Format::qoperator}))));

  // ONNX Runtime's operators have one type for all operands; other layers stay between pairs.
  graph::Graph mixed = quantized_graph({0, kInfinity});
  for (graph::Value &value : mixed.values)
    if (value.name == "c") value.quantizer = per_tensor(QTN_INT8, 0.02, 0);
  assert_int_equal(std::ranges::count(operators(mixed), "Conv"), 1);
  graph::Graph wide = quantized_graph({0, kInfinity});
  for (graph::Value &value : wide.values)
    if (value.name == "c") value.quantizer = per_tensor(QTN_UINT16, 0.001, 0);
  assert_int_equal(std::ranges::count(operators(wide), "Conv"), 1);
  expect_same_bits(run(wide), run(parse(onnx::serialize(wide, {.format = onnx::Format::qoperator}))));

  // Integers whose real form could overflow are read as integers, and would be computed otherwise.
  graph::Graph huge = quantized_graph({0, kInfinity});
  for (graph::Value &value : huge.values)
    if (value.name == "c") value.quantizer = per_tensor(QTN_UINT8, 1e30, 0);
  assert_int_equal(std::ranges::count(operators(huge), "Conv"), 1);
}

void input_that_is_output(void **) {
  graph::Graph g;
  const ValueId x = add_value(g, "x", per_tensor(QTN_UINT8, 0.5, 3)), y = add_value(g, "y");
  g.value(x).shape = Shape{2};
  g.inputs = {x};
  g.outputs = {x, y};
  add_node(g, "relu", "Relu", {x}, y);
  const graph::Graph back = parse(onnx::serialize(g, {}));
  assert_string_equal(back.value(back.inputs[0]).name.c_str(), "x");
  const Tensor input = ramp({2});
  expect_same_bits(graph::evaluate(g, std::span(&input, 1)), graph::evaluate(back, std::span(&input, 1)));
}

/// Layers with equal weights share them in the file; small constants, as biases are, keep their names.
void equal_weights_are_written_once(void **) {
  graph::Graph g;
  const ValueId x = add_value(g, "x"), y = add_value(g, "y"), z = add_value(g, "z"), s = add_value(g, "s");
  g.value(x).shape = Shape{2, 40};
  g.inputs = {x};
  Tensor other = ramp({40, 40});
  other.as<float>()[1599] = 5;
  const ValueId a = g.add_constant("a", ramp({40, 40})), b = g.add_constant("b", ramp({40, 40}));
  const ValueId c = g.add_constant("c", other), bias = g.add_constant("bias", ramp({40}));
  const ValueId same_bias = g.add_constant("same_bias", ramp({40})), u = add_value(g, "u"), v = add_value(g, "v");
  add_node(g, "first", "MatMul", {x, a}, y);
  add_node(g, "second", "MatMul", {y, b}, z);
  add_node(g, "third", "MatMul", {z, c}, s);
  add_node(g, "fourth", "Add", {s, bias}, u);
  add_node(g, "fifth", "Add", {u, same_bias}, v);
  g.outputs = {v};
  const std::string bytes = onnx::serialize(g, {});
  assert_true(bytes.size() < 2 * 1600 * sizeof(float) + 1600);
  const graph::Graph back = parse(bytes);
  std::size_t constants = 0;
  for (const graph::Value &value : back.values) constants += value.is_constant();
  assert_int_equal(constants, 4);
  assert_true(back.nodes[0].inputs[1] == back.nodes[1].inputs[1]);
  assert_true(equal(back.value(back.nodes[2].inputs[1]).constant, other));
}

void names_that_collide(void **) {
  graph::Graph g;
  const ValueId x = add_value(g, "y_quantized", per_tensor(QTN_UINT8, 0.5, 3)),
                y = add_value(g, "y", per_tensor(QTN_UINT8, 0.25, 0));
  const ValueId twin = add_value(g, "y_quantized");
  g.value(x).shape = Shape{2};
  g.inputs = {x};
  g.outputs = {y};
  add_node(g, "same", "Relu", {x}, twin);
  add_node(g, "same", "Relu", {twin}, y);
  const graph::Graph back = parse(onnx::serialize(g, {}));
  const Tensor input = ramp({2});
  expect_same_bits(graph::evaluate(g, std::span(&input, 1)), graph::evaluate(back, std::span(&input, 1)));
}

/// One node on x, written at an opset.
std::string written(const char *op, Attrs attrs, std::vector<Tensor> constants, int opset, std::size_t outputs = 1,
                    const Shape &shape = {1, 4, 2, 2}) {
  graph::Graph g;
  const ValueId x = add_value(g, "x");
  g.value(x).shape = shape;
  g.inputs = {x};
  std::vector<ValueId> inputs{x};
  for (const Tensor &constant : constants)
    inputs.push_back(constant.has_data() ? g.add_constant("k", constant) : kNoValue);
  graph::Node node{"node", ops::find_op(op), std::move(attrs), std::move(inputs), {}, {}};
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(add_value(g, cat("y", i)));
  g.outputs = node.outputs;
  g.nodes.push_back(std::move(node));
  return onnx::serialize(g, {opset});
}

Attrs attr(const char *name, Attr value) {
  Attrs attrs;
  attrs.set(name, std::move(value));
  return attrs;
}

void forms_of_older_opsets(void **) {
  const std::int64_t axes[] = {2, 3};
  const std::string old_mean = written("ReduceMean", {}, {Tensor::from_ints(axes)}, 17);
  assert_int_equal(read_back(old_mean).nodes[0].inputs.size(), 1);
  const onnx::AttributeProto written_axes = read_back(old_mean).nodes[0].attributes[0];
  assert_string_equal(written_axes.name.c_str(), "axes");
  const Attr value = onnx::read_attribute(written_axes, "");
  assert_true(std::get<std::vector<std::int64_t>>(value) == (std::vector<std::int64_t>{2, 3}));
  assert_int_equal(read_back(written("ReduceMean", {}, {Tensor::from_ints(axes)}, 18)).nodes[0].inputs.size(), 2);
  const graph::Graph back = parse(old_mean);
  assert_int_equal(back.nodes[0].inputs.size(), 2);

  Attrs split = attr("axis", std::int64_t{1});
  assert_int_equal(read_back(written("Split", split, {}, 18, 2)).nodes[0].attributes.size(), 2);
  split.set("num_outputs", std::int64_t{2});
  assert_int_equal(read_back(written("Split", split, {}, 17, 2)).nodes[0].attributes.size(), 1);
  assert_int_equal(read_back(written("Split", split, {}, 17, 2)).nodes[0].inputs.size(), 1);
  // Parts that are not equal: 2, 2 and nothing of 4 channels.
  split.set("num_outputs", std::int64_t{3});
  const graph::Graph uneven = parse(written("Split", split, {}, 17, 3));
  const graph::Value &lengths = uneven.value(uneven.nodes[0].inputs.at(1));
  assert_true(int_values(lengths.constant, "lengths") == (std::vector<std::int64_t>{2, 2, 0}));
  // The second part of a batch of one has nothing, and an older opset cannot say so.
  Attrs batch = attr("num_outputs", std::int64_t{2});
  written("Split", batch, {}, 18, 2, {-1, 4});
  expect_error(QTN_EUNSUPPORTED, {"Split", "opset 17 has no 2 unequal parts of an open dimension"}, [&] {
    written("Split", batch, {}, 17, 2, {-1, 4});
  });
  expect_error(QTN_EUNSUPPORTED, {"Split", "opset 17 has no 2 unequal parts of an open dimension"}, [] {
    graph::Graph g;
    const ValueId x = add_value(g, "x"), sum = add_value(g, "sum"), first = add_value(g, "first"),
                  second = add_value(g, "second");
    g.value(x).shape = Shape{-1, 4};
    g.inputs = {x};
    g.outputs = {sum, first, second};
    // Neither one row nor two are added to three.
    add_node(g, "add", "Add", {x, g.add_constant("rows", Tensor(QTN_FLOAT32, {3, 4}))}, sum);
    add_node(g, "split", "Split", {x}, first);
    g.nodes.back().outputs.push_back(second);
    g.nodes.back().attrs.set("num_outputs", std::int64_t{2});
    onnx::serialize(g, {17});
  });
  batch.set("num_outputs", std::int64_t{3});  // which batches of one and two do not fit at all
  expect_error(QTN_EUNSUPPORTED, {"Split", "opset 17 has no 3 unequal parts of an open dimension"}, [&] {
    written("Split", batch, {}, 17, 3, {-1, 4});
  });

  for (const auto &[op, since] : {std::pair("LayerNormalization", 17), std::pair("RMSNormalization", 23)}) {
    const std::vector<Tensor> scale{ramp({2, 2})};
    const Attrs of_images = attr("axis", std::int64_t{-2});
    written(op, of_images, scale, since);
    expect_error(QTN_EUNSUPPORTED, {op, cat("opset ", since - 1)},
                 [&, op = op, since = since] { written(op, of_images, scale, since - 1); });
  }
  for (const auto &[op, since] : {std::pair("BitwiseNot", 18), std::pair("Trilu", 14)}) {
    written(op, {}, {}, since);
    expect_error(QTN_EUNSUPPORTED, {op, cat("opset ", since - 1)},
                 [&, op = op, since = since] { written(op, {}, {}, since - 1); });
  }
  const std::pair<qdtype, int> types[] = {
      {QTN_FLOAT8E5M2FNUZ, 19}, {QTN_INT4, 21}, {QTN_FLOAT4E2M1, 23}, {QTN_FLOAT8E8M0, 24}, {QTN_UINT2, 25}};
  for (const auto &[dtype, since] : types) {
    const Attrs to = attr("to", std::int64_t{dtype});
    written("Cast", to, {}, since);
    const std::string lacks = cat("opset ", since - 1, " has no type ", dtype_name(dtype), "; opset ", since, " has");
    expect_error(QTN_EUNSUPPORTED, {lacks}, [&, since = since] { written("Cast", to, {}, since - 1); });
    // Files say which types are cast like: those of an input, or of a constant.
    expect_error(QTN_EUNSUPPORTED, {lacks},
                 [&, since = since, dtype = dtype] { written("CastLike", {}, {Tensor(dtype, {1})}, since - 1); });
  }
  const Attrs inner = [] {
    Attrs attrs = attr("mode", std::string("CRD"));
    attrs.set("blocksize", std::int64_t{2});
    return attrs;
  }();
  written("SpaceToDepth", inner, {}, 28);
  expect_error(QTN_EUNSUPPORTED, {"\"mode\"", "opset 27"}, [&] { written("SpaceToDepth", inner, {}, 27); });
  // The axis of a transform was an attribute, of another default.
  const std::int64_t length = 4, axis = 2;
  const auto number = [](const std::int64_t &n) { return Tensor::from<std::int64_t>(QTN_INT64, {}, std::span(&n, 1)); };
  for (const bool given : {false, true}) {
    const std::vector<Tensor> inputs = given ? std::vector{number(length), number(axis)} : std::vector{number(length)};
    assert_int_equal(read_back(written("DFT", {}, inputs, 20)).nodes[0].inputs.size(), given ? 3 : 2);
    const std::string old = written("DFT", {}, inputs, 19);
    assert_int_equal(read_back(old).nodes[0].inputs.size(), 2);
    const graph::Graph again = parse(old);
    assert_int_equal(int_values(again.value(again.nodes[0].inputs.at(2)).constant, "axis")[0], given ? axis : -2);
  }
  for (const char *op : {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                         "ReduceLogSumExp", "ReduceSumSquare"})
    assert_int_equal(read_back(written(op, {}, {Tensor::from_ints(axes)}, 17)).nodes[0].inputs.size(), 1);
  assert_int_equal(read_back(written("ReduceSum", {}, {Tensor::from_ints(axes)}, 13)).nodes[0].inputs.size(), 2);
  written("Shape", attr("start", std::int64_t{1}), {}, 15);
  expect_error(QTN_EUNSUPPORTED, {"\"start\"", "opset 14"},
               [] { written("Shape", attr("start", std::int64_t{1}), {}, 14); });
  assert_int_equal(read_back(written("Shape", attr("start", std::int64_t{0}), {}, 14)).nodes[0].attributes.size(), 0);
  for (const int opset : {12, 29})
    expect_error(QTN_EUNSUPPORTED, {cat("not ", opset)}, [&] { written("Relu", {}, {}, opset); });

  graph::Graph wide = quantized_graph();
  wide.value(wide.outputs[0]).quantizer = per_tensor(QTN_UINT16, 1.0f / 8192, 0);
  assert_true(*named(parse(onnx::serialize(wide, {21})), "y").quantizer == *named(wide, "y").quantizer);
  expect_error(QTN_EUNSUPPORTED, {"opset 20 has no quantization to uint16; opset 21 has"},
               [&] { onnx::serialize(wide, {20}); });
}

void scalars_have_a_shape(void **) {
  graph::Graph g;
  const ValueId x = add_value(g, "x"), y = add_value(g, "y");
  g.value(x).shape = g.value(y).shape = Shape{};
  g.inputs = {x};
  g.outputs = {y};
  add_node(g, "relu", "Relu", {x}, y);
  const graph::Graph back = parse(onnx::serialize(g, {21}));
  for (const ValueId v : {back.inputs[0], back.outputs[0]}) assert_true(back.value(v).shape == Shape{});
}

/// The rank stays where some of the sizes are unknown, or all of them, with a batch of the inputs and without.
void unknown_sizes_count(void **) {
  for (const std::int64_t batch : {std::int64_t{2}, std::int64_t{-1}})
    for (const Shape &shape : {Shape{-1, 3, -1}, Shape{2, -1}, Shape{-1}, Shape{-1, -1, -1}, Shape{2, -1, 4}}) {
      graph::Graph g;
      const ValueId x = add_value(g, "x"), y = add_value(g, "y");
      g.value(x).shape = Shape{batch, 3, 4};
      g.value(y).shape = shape;
      g.inputs = {x};
      g.outputs = {y};
      add_node(g, "relu", "Relu", {x}, y);
      const graph::Graph back = parse(onnx::serialize(g, {21}));
      assert_true(back.value(back.inputs[0]).shape == g.value(x).shape);
      assert_true(back.value(back.outputs[0]).shape == shape);
    }
}

/// Names of the file stay; where it has none, equal names would promise equal sizes.
void names_of_open_dimensions(void **) {
  const auto symbols_of = [](const std::vector<std::vector<std::string>> &inputs,
                             const std::vector<std::string> &output) {
    graph::Graph g;
    std::vector<ValueId> sums;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId x = add_value(g, cat("x", i)), sum = add_value(g, cat("sum", i));
      g.value(x).shape = Shape{-1, 3, -1};
      g.value(x).symbols = inputs[i];
      g.value(sum).shape = Shape{-1, 3, -1};
      g.value(sum).symbols = output;
      g.inputs.push_back(x);
      g.outputs.push_back(sum);
      add_node(g, cat("relu", i), "Relu", {x}, sum);
    }
    const graph::Graph back = parse(onnx::serialize(g, {21}));
    std::vector<std::string> symbols;
    for (const auto &ids : {back.inputs, back.outputs})
      for (const ValueId v : ids)
        for (const std::size_t d : {0, 2}) symbols.push_back(back.value(v).symbols[d]);
    return symbols;
  };
  using Names = std::vector<std::string>;
  assert_true(symbols_of({{}}, {}) == (Names{"N", "dim_2", "N", ""}));
  assert_true(symbols_of({{"batch", "", "time"}}, {}) == (Names{"batch", "time", "batch", ""}));
  assert_true(symbols_of({{"batch", "", "time"}}, {"", "", "half"}) == (Names{"batch", "time", "batch", "half"}));
  assert_true(symbols_of({{"nodes"}, {"edges"}}, {}) ==
              (Names{"nodes", "x0_dim_2", "edges", "x1_dim_2", "", "", "", ""}));
  assert_true(symbols_of({{}, {}}, {}) == (Names{"x0_dim_0", "x0_dim_2", "x1_dim_0", "x1_dim_2", "", "", "", ""}));
}

void operators_of_another_domain(void **) {
  const auto domains = [](const std::string &bytes) { return onnx::read_model({bytes.data(), bytes.size()}).opsets; };
  using Opsets = std::vector<std::pair<std::string, std::int64_t>>;
  assert_true(domains(written("Relu", {}, {}, 17)) == (Opsets{{"", 17}}));

  const std::vector<std::string> grid{float_tensor("s", {}, {0.5f}), raw_tensor<std::uint8_t>("z", QTN_UINT8, {}, {3})};
  const graph::Graph g = parse(ModelText{
      .nodes = {{"QuantizeLinear", {"x", "s", "z"}, {"q"}},
                // Without a zero point of its result the reader leaves it as it is.
                {"QLinearLeakyRelu", {"q", "s", "z", "s"}, {"r"}, "leaky", "com.microsoft"},
                {"DequantizeLinear", {"r", "s"}, {"y"}}},
      .initializers = grid,
      .shape = {-1, 2}}.bytes());
  const std::string bytes = onnx::serialize(g, {});
  assert_true(domains(bytes) == (Opsets{{"", 21}, {"com.microsoft", 1}}));
  const onnx::GraphProto proto = read_back(bytes);
  assert_string_equal(proto.nodes[0].domain.c_str(), "");
  assert_string_equal(proto.nodes[1].domain.c_str(), "com.microsoft");
  assert_true(ops_in(bytes) == (std::vector<std::string>{"QuantizeLinear", "QLinearLeakyRelu", "DequantizeLinear"}));
  const Tensor x = ramp({3, 2});
  expect_same_bits(graph::evaluate(g, std::span(&x, 1)), graph::evaluate(parse(bytes), std::span(&x, 1)));
}

void integers_in_older_opsets(void **) {
  const Tensor scale = Tensor::scalar(0.5f), wide(QTN_INT16, {}), byte(QTN_INT8, {});
  const auto quantize = [&](const char *key, std::int64_t value, int opset, const Tensor &zero) {
    const std::string bytes = written("QuantizeLinear", attr(key, value), {scale, zero}, opset);
    return read_back(bytes).nodes[0].attributes.size();
  };
  assert_int_equal(quantize("saturate", 1, 13, byte), 0);
  assert_int_equal(quantize("block_size", 0, 20, {}), 0);
  assert_int_equal(quantize("output_dtype", QTN_INT16, 21, {}), 1);
  expect_error(QTN_EUNSUPPORTED, {"\"output_dtype\"", "opset 20"},
               [&] { quantize("output_dtype", QTN_INT16, 20, {}); });
  expect_error(QTN_EUNSUPPORTED, {"\"block_size\"", "opset 20"}, [&] { quantize("block_size", 2, 20, byte); });
  expect_error(QTN_EUNSUPPORTED, {"opset 20", "quantization to int16"}, [&] { quantize("axis", 1, 20, wide); });
  const Tensor packed(QTN_INT4, {});
  expect_error(QTN_EUNSUPPORTED, {"opset 20", "type int4"}, [&] { quantize("axis", 1, 20, packed); });
}

void softmax_over_several_axes(void **) {
  const auto read = [](std::vector<std::int64_t> shape, const char *op = "Softmax") {
    return parse(ModelText{.opset = 11, .nodes = {{op, {"x"}, {"y"}, "softmax"}}, .shape = std::move(shape)}.bytes());
  };
  const graph::Graph g = read({2, 3, 2});
  const Tensor x = ramp({2, 3, 2});
  const std::string bytes = onnx::serialize(g, {});
  assert_true(ops_in(bytes) == (std::vector<std::string>{"Shape", "Flatten", "Softmax", "Reshape"}));
  expect_same_bits(graph::evaluate(g, std::span(&x, 1)), graph::evaluate(parse(bytes), std::span(&x, 1)));
  assert_true(ops_in(onnx::serialize(read({2, 3}), {})) == (std::vector<std::string>{"Softmax"}));
  assert_true(ops_in(onnx::serialize(read({2, 3, 2}, "LogSoftmax"), {}))[2] == "LogSoftmax");
}

void files(void **) {
  const TemporaryFolder folder;
  const graph::Graph g = quantized_graph();
  const std::string path = folder.file("model.onnx");
  onnx::save(g, path, {});
  expect_same_bits(run(g), run(onnx::load(path)));
  folder.put("model.onnx", "something older and longer than that: " + std::string(100000, '#'));
  onnx::save(g, path, {});
  expect_same_bits(run(g), run(onnx::load(path)));
  assert_int_equal(folder.count(), 1);

  expect_error(QTN_EIO, {"none/model.onnx", "No such file"},
               [&] { onnx::save(g, folder.file("none/model.onnx"), {}); });
  expect_error(QTN_EIO, {folder.path()}, [&] { onnx::save(g, folder.path(), {}); });
  expect_error(QTN_EIO, {}, [&] { onnx::save(g, "", {}); });
  std::filesystem::create_directory(folder.file("taken"));
  expect_error(QTN_EIO, {"taken", "Is a directory"}, [&] { onnx::save(g, folder.file("taken"), {}); });
  expect_error(QTN_EUNSUPPORTED, {"opset"}, [&] { onnx::save(g, folder.file("new.onnx"), {3}); });
  assert_int_equal(folder.count(), 2);
}

/// x -> MatMul by weights -> Add of the same weights, which are kept twice -> y.
graph::Graph graph_of_large_constants() {
  graph::Graph g;
  const ValueId x = add_value(g, "x"), w = g.add_constant("w", ramp({40, 40})), v = g.add_constant("v", ramp({40, 40}));
  const ValueId few = g.add_constant("few", ramp({40})), product = add_value(g, "product"), sum = add_value(g, "sum");
  const ValueId other = g.add_constant("other", ramp({5, 40, 40})), y = add_value(g, "y");
  g.value(x).shape = Shape{40, 40};
  g.inputs = {x};
  g.outputs = {y};
  add_node(g, "matmul", "MatMul", {x, w}, product);
  add_node(g, "add", "Add", {product, v}, sum);
  const ValueId all = add_value(g, "all");
  add_node(g, "bias", "Add", {sum, few}, all);
  add_node(g, "last", "Mul", {all, other}, y);
  return g;
}

std::vector<std::string> names_in(const TemporaryFolder &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void external_data(void **) {
  const TemporaryFolder folder;
  const graph::Graph g = graph_of_large_constants();
  const std::string path = folder.file("model.onnx");
  const auto values = [](const graph::Graph &of) {
    const Tensor x = ramp({40, 40});
    return graph::evaluate(of, std::span(&x, 1));
  };
  const onnx::SaveOptions beside{.external_data = true};
  // The model that is there names the file that it has until it is replaced.
  for (const char *data : {"model.onnx.data", "model.onnx.1.data", "model.onnx.data"}) {
    onnx::save(g, path, beside);
    assert_true(names_in(folder) == (std::vector<std::string>{"model.onnx", data}));
    assert_int_equal(std::filesystem::file_size(folder.file(data)), 8192 + 5 * 6400);
    assert_true(std::filesystem::file_size(path) < 1024);
    expect_same_bits(values(g), values(onnx::load(path)));
  }
  onnx::save(onnx::load(path), path, beside);
  expect_same_bits(values(g), values(onnx::load(path)));

  // What cannot be written leaves what was there.
  const std::vector<std::string> before = names_in(folder);
  std::filesystem::create_symlink("model.onnx", folder.file("link.onnx"));
  expect_error(QTN_EUNSUPPORTED, {"link.onnx", "no regular file"},
               [&] { onnx::save(g, folder.file("link.onnx"), beside); });
  std::filesystem::remove(folder.file("link.onnx"));
  expect_error(QTN_EIO, {"none/model.onnx.data"}, [&] { onnx::save(g, folder.file("none/model.onnx"), beside); });
  expect_error(QTN_EUNSUPPORTED, {"bytes in memory"}, [&] { onnx::serialize(g, beside); });
  assert_true(names_in(folder) == before);
  expect_same_bits(values(g), values(onnx::load(path)));

  // A file that no model here names is somebody's own.
  folder.put("own.onnx.data", "text");
  for (int i = 0; i < 3; ++i) onnx::save(g, folder.file("own.onnx"), beside);
  assert_int_equal(folder.count(), 5);
  assert_int_equal(std::filesystem::file_size(folder.file("own.onnx.data")), 4);
  expect_same_bits(values(g), values(onnx::load(folder.file("own.onnx"))));
  // So is one of which only the path looks like that.
  const std::vector<char> named = read_file(folder.file("own.onnx"));
  std::string other(named.begin(), named.end());
  for (std::size_t at; (at = other.find("own.onnx.1.data")) != std::string::npos;)
    other.replace(at, 15, "own.onnx./.data");
  folder.put("own.onnx", other);
  folder.put(".data", "text");
  onnx::save(g, folder.file("own.onnx"), beside);
  assert_true(std::filesystem::remove(folder.file(".data")));
  assert_true(std::filesystem::remove(folder.file("own.onnx.1.data")));

  onnx::save(g, folder.file("one.onnx"), {});
  onnx::save(g, folder.file("inside.onnx"), {.external_data = false});
  assert_int_equal(folder.count(), 7);
  assert_true(std::filesystem::file_size(folder.file("inside.onnx")) ==
              std::filesystem::file_size(folder.file("one.onnx")));
}

/// Unless one is asked for: the usual opset, or the first that has the operators.
void the_opset_follows_from_the_operators(void **) {
  const auto opset_of = [](const char *op, std::size_t inputs, const onnx::SaveOptions &options) {
    graph::Graph g;
    const ValueId x = add_value(g, "x"), y = add_value(g, "y");
    g.value(x).shape = Shape{1, 2, 4, 4};
    g.inputs = {x};
    g.outputs = {y};
    add_node(g, "node", op, std::vector<ValueId>(inputs, x), y);
    const std::string bytes = onnx::serialize(g, options);
    return *onnx::default_opset(onnx::read_model({bytes.data(), bytes.size()}).opsets);
  };
  assert_int_equal(opset_of("Relu", 1, {}), 21);
  assert_int_equal(opset_of("Attention", 3, {}), 23);
  assert_int_equal(opset_of("CumProd", 2, {}), 26);
  assert_int_equal(opset_of("Relu", 1, {13}), 13);
  expect_error(QTN_EUNSUPPORTED, {"node \"node\" (Attention): opset 22 has no such operator"},
               [&] { opset_of("Attention", 3, {22}); });
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::quantized_round_trip),
      cmocka_unit_test(qtn::what_a_quantized_file_holds),
      cmocka_unit_test(qtn::pairs_by_channel),
      cmocka_unit_test(qtn::grids_that_onnx_does_not_have),
      cmocka_unit_test(qtn::quantized_operators),
      cmocka_unit_test(qtn::activations_keep_their_zero_point),
      cmocka_unit_test(qtn::other_numerics_survive),
      cmocka_unit_test(qtn::input_that_is_output),
      cmocka_unit_test(qtn::equal_weights_are_written_once),
      cmocka_unit_test(qtn::names_that_collide),
      cmocka_unit_test(qtn::forms_of_older_opsets),
      cmocka_unit_test(qtn::scalars_have_a_shape),
      cmocka_unit_test(qtn::unknown_sizes_count),
      cmocka_unit_test(qtn::names_of_open_dimensions),
      cmocka_unit_test(qtn::operators_of_another_domain),
      cmocka_unit_test(qtn::integers_in_older_opsets),
      cmocka_unit_test(qtn::softmax_over_several_axes),
      cmocka_unit_test(qtn::files),
      cmocka_unit_test(qtn::external_data),
      cmocka_unit_test(qtn::the_opset_follows_from_the_operators),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
