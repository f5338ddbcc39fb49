// SPDX-License-Identifier: Apache-2.0
// Protobuf's other spellings of the same fields, attributes that no operator takes, and functions with defaults.
#include "support.hpp"

namespace qtn::test {
namespace {

namespace f = onnx::field;

/// y = Constant(attribute).
ModelText constant_of(const std::function<void(pbf_writer &)> &fill) {
  return {.nodes = {{"Constant", {}, {"y"}, "c", "", {write(fill)}}}};
}

const Tensor &value_of(const graph::Graph &g) { return g.value(g.outputs[0]).constant; }

void packed_lists(void **) {
  const graph::Graph numbers = parse(constant_of([](pbf_writer &a) {
                                       a.add_string(f::attribute::name, "value_floats");
                                       const std::vector<float> values{1.5f, -2};
                                       a.add_packed_float(f::attribute::floats, values.begin(), values.end());
                                       a.add_enum(f::attribute::type, 6);
                                     }).bytes());
  assert_true(equal(value_of(numbers), floats({2}, {1.5f, -2})));
  const graph::Graph integers = parse(constant_of([](pbf_writer &a) {
                                        a.add_string(f::attribute::name, "value_ints");
                                        const Ints values{3, -4, 5};
                                        a.add_packed_int64(f::attribute::ints, values.begin(), values.end());
                                        a.add_enum(f::attribute::type, 7);
                                      }).bytes());
  assert_true(equal(value_of(integers), ints({3, -4, 5})));
}

/// dims, which ONNX does not pack, may be packed; composed operators read them by themselves.
void packed_dimensions(void **) {
  const std::string tensor = write([](pbf_writer &t) {
    const Ints dims{1, 2};
    const std::vector<float> values{3, 4};
    t.add_packed_int64(f::tensor::dims, dims.begin(), dims.end());
    t.add_int32(f::tensor::data_type, QTN_FLOAT32);
    t.add_string(f::tensor::name, "w");
    t.add_packed_float(f::tensor::float_data, values.begin(), values.end());
  });
  ModelText model{.nodes = {{"Add", {"x", "w"}, {"y"}}}, .initializers = {tensor}};
  assert_true(equal(named(parse(model.bytes()), "w").constant, floats({1, 2}, {3, 4})));
  model.nodes = {{"FusedMatMul", {"x", "w"}, {"y"}, "m", "com.microsoft", {int_attribute("transB", 1)}}};
  const Tensor x = floats({1, 2}, {1, 10});
  assert_true(equal(graph::evaluate(parse(model.bytes()), std::span(&x, 1))[0], floats({1, 1}, {43})));
}

/// uint64_data holds both unsigned types of more than 16 bits.
void unsigned_lists(void **) {
  for (const std::int32_t type : {QTN_UINT32, QTN_UINT64}) {
    const auto identity = [&](const Ints &dims) {
      return ModelText{.nodes = {{"Identity", {"w"}, {"y"}}},
                       .initializers = {tensor_text("w", type, dims,
                                                    [](pbf_writer &t) {
                                                      const std::vector<std::uint64_t> values{0, 7, 4294967295};
                                                      t.add_packed_uint64(f::tensor::uint64_data, values.begin(),
                                                                          values.end());
                                                    })}}
          .bytes();
    };
    assert_true(int_values(named(parse(identity({3})), "w").constant, "w") == (Ints{0, 7, 4294967295}));
    expect_error(QTN_EFORMAT,
                 cat("initializer \"w\" of shape 4 and type ", type == QTN_UINT32 ? "uint32" : "uint64",
                     " needs 4 elements, the file holds 3"),
                 [&] { parse(identity({4})); });
  }
}

void types_of_no_tensor_here(void **) {
  for (const auto &[type, name] : {std::pair(8, "string"), std::pair(14, "complex64"), std::pair(15, "complex128"),
                                   std::pair(99, "number 99"), std::pair(-1, "number -1")})
    expect_error(QTN_EUNSUPPORTED, cat("model: initializer \"w\" has element type ", name, ", which is not supported"),
                 [&, type = type] {
                   parse(ModelText{.nodes = {{"Identity", {"w"}, {"y"}}},
                                   .initializers = {tensor_text("w", type, {0}, [](pbf_writer &) {})}}
                             .bytes());
                 });
}

void attributes_of_no_operator(void **) {
  const auto refuse = [](qstatus status, const std::string &text, const std::function<void(pbf_writer &)> &fill) {
    const ModelText model = constant_of([&](pbf_writer &a) {
      a.add_string(f::attribute::name, "value");
      fill(a);
    });
    expect_error(status, "node \"c\" (Constant): attribute \"value\" " + text, [&] { parse(model.bytes()); });
  };
  const std::string some = float_tensor("", {1}, {1});
  refuse(QTN_EUNSUPPORTED, "is a list of tensors, which is not supported",
         [&](pbf_writer &a) { a.add_message(f::attribute::tensors, some); });
  refuse(QTN_EUNSUPPORTED, "is a subgraph, which is not supported",
         [&](pbf_writer &a) { a.add_message(f::attribute::graphs, std::string()); });
  refuse(QTN_EUNSUPPORTED, "is a subgraph, which is not supported",
         [&](pbf_writer &a) { a.add_message(f::attribute::g, std::string()); });
  refuse(QTN_EUNSUPPORTED, "is a reference to a function's attribute, which is not supported",
         [&](pbf_writer &a) { a.add_string(f::attribute::ref_attr_name, "other"); });
  refuse(QTN_EUNSUPPORTED, "has type 0, which is not supported", [](pbf_writer &) {});
  refuse(QTN_EUNSUPPORTED, "has type 13, which is not supported",
         [](pbf_writer &a) { a.add_enum(f::attribute::type, 13); });
  refuse(QTN_EFORMAT, "says it is a tensor and holds none", [](pbf_writer &a) { a.add_enum(f::attribute::type, 4); });
  refuse(QTN_EFORMAT, "says it is a sparse tensor and holds none",
         [](pbf_writer &a) { a.add_enum(f::attribute::type, 11); });
  refuse(QTN_EUNSUPPORTED, "holds no tensor, number or list of numbers", [](pbf_writer &a) {
    a.add_string(f::attribute::s, "text");
    a.add_enum(f::attribute::type, 3);
  });
}

/// A model that calls functions; fields of FunctionProto are written by `fill`.
std::string model_of(const NodeText &call, const std::vector<std::function<void(pbf_writer &)>> &functions) {
  std::string bytes = ModelText{.nodes = {call}}.bytes();
  for (const auto &fill : functions)
    bytes += write([&](pbf_writer &model) { model.add_message(f::model::functions, write(fill)); });
  return bytes;
}

/// y = op(x), whose attribute alpha is the function's slope.
void leaky(pbf_writer &function) {
  function.add_string(f::function::name, "Leaky");
  function.add_string(f::function::domain, "own");
  function.add_string(f::function::input, "a");
  function.add_string(f::function::output, "b");
  pbf_writer node(function, f::function::node);
  node.add_string(f::node::input, "a");
  node.add_string(f::node::output, "b");
  node.add_string(f::node::op_type, "LeakyRelu");
  pbf_writer attribute(node, f::node::attribute);
  attribute.add_string(f::attribute::name, "alpha");
  attribute.add_string(f::attribute::ref_attr_name, "slope");
  attribute.add_enum(f::attribute::type, 1);
}

std::string slope_attribute(float slope) {
  return write([&](pbf_writer &a) {
    a.add_string(f::attribute::name, "slope");
    a.add_float(f::attribute::f, slope);
    a.add_enum(f::attribute::type, 1);
  });
}

void leaky_of_a_quarter(pbf_writer &function) {
  leaky(function);
  function.add_message(f::function::attribute_proto, slope_attribute(0.25f));
}

/// What a call says, else the function, else the operator.
void attributes_of_functions(void **) {
  const auto alpha = [](const std::string &bytes) {
    const graph::Graph g = parse(bytes);
    assert_true(op_names(g) == std::vector<std::string>{"LeakyRelu"});
    return g.nodes[0].attrs.get_float("alpha", -1);
  };
  const NodeText plain{"Leaky", {"x"}, {"y"}, "n", "own"},
      said{"Leaky", {"x"}, {"y"}, "n", "own", {slope_attribute(0.5f)}};
  assert_true(alpha(model_of(said, {leaky_of_a_quarter})) == 0.5);
  assert_true(alpha(model_of(plain, {leaky_of_a_quarter})) == 0.25);
  assert_true(alpha(model_of(plain, {leaky})) == -1);
}

/// Functions of one name are told apart by what is called their overload.
void overloads(void **) {
  const auto overloaded = [](const std::string &overload, float slope) {
    return [=](pbf_writer &function) {
      leaky(function);
      function.add_string(f::function::overload, overload);
      function.add_message(f::function::attribute_proto, slope_attribute(slope));
    };
  };
  std::string bytes = model_of({"Relu", {"x"}, {"r"}}, {overloaded("one", 1), overloaded("two", 2)});
  bytes += write([](pbf_writer &model) {
    pbf_writer graph(model, f::model::graph);
    pbf_writer(graph, f::graph::output).add_string(f::value_info::name, "y");
    {
      pbf_writer input(graph, f::graph::input);
      input.add_string(f::value_info::name, "x");
      pbf_writer type(input, f::value_info::type);
      pbf_writer(type, f::type::tensor_type).add_int32(f::tensor_type::elem_type, QTN_FLOAT32);
    }
    pbf_writer node(graph, f::graph::node);
    node.add_string(f::node::input, "x");
    node.add_string(f::node::output, "y");
    node.add_string(f::node::op_type, "Leaky");
    node.add_string(f::node::domain, "own");
    node.add_string(f::node::overload, "two");
  });
  assert_true(parse(bytes).nodes.at(0).attrs.get_float("alpha", -1) == 2);
}

void calls_that_do_not_fit(void **) {
  expect_error(QTN_EFORMAT, "function Leaky takes 1 inputs and makes 1 outputs, node \"n\" has 2 and 1", [] {
    parse(model_of({"Leaky", {"x", "x"}, {"y"}, "n", "own"}, {leaky}));
  });
  expect_error(QTN_EFORMAT, "function Leaky takes 1 inputs and makes 1 outputs, node \"n\" has 1 and 2", [] {
    parse(model_of({"Leaky", {"x"}, {"y", "z"}, "n", "own"}, {leaky}));
  });
  expect_error(QTN_EFORMAT, "function Round (domain own) is called by itself, or 64 functions deep", [] {
    parse(model_of({"Round", {}, {}, "n", "own"}, {[](pbf_writer &function) {
                     function.add_string(f::function::name, "Round");
                     function.add_string(f::function::domain, "own");
                     pbf_writer node(function, f::function::node);
                     node.add_string(f::node::op_type, "Round");
                     node.add_string(f::node::domain, "own");
                   }}));
  });
}

/// What a call leaves out is absent in the function's nodes, too.
void inputs_that_a_call_leaves_out(void **) {
  expect_error(QTN_EFORMAT, "(LeakyRelu): 0 inputs given, 1 to 1 expected", [] {
    parse(model_of({"Leaky", {}, {"y"}, "n", "own"}, {leaky}));
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(packed_lists),
                              cmocka_unit_test(packed_dimensions),
                              cmocka_unit_test(unsigned_lists),
                              cmocka_unit_test(types_of_no_tensor_here),
                              cmocka_unit_test(attributes_of_no_operator),
                              cmocka_unit_test(attributes_of_functions),
                              cmocka_unit_test(overloads),
                              cmocka_unit_test(calls_that_do_not_fit),
                              cmocka_unit_test(inputs_that_a_call_leaves_out)};
  return cmocka_run_group_tests_name("onnx/messages", tests, nullptr, nullptr);
}
