// SPDX-License-Identifier: Apache-2.0
// Integers of fewer bits than their type has: "weight_bits", "activation_bits".
#include "golden_network.hpp"
#include "graph/evaluate.hpp"
#include "onnx/onnx.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr const char *kRecipes[] = {"onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite"};

Config with_bits(const char *recipe, std::int64_t bits) {
  Config config(recipe);
  const Attrs a = attrs({{"weight_bits", bits}, {"activation_bits", bits}});
  config.set("*", &a);
  return config;
}

/// Sums of two layers, whose values are moved beside a constant, and a bounded function.
graph::Graph network() {
  GraphBuilder g;
  g.input("x", {1, 4, 3, 3}).constant("k", floats({1, 1, 3, 3}, {9, -9, 0, 1, 2, 3, 4, 5, 6}));
  g.conv("a", "x", "u", 4, 4).node("Relu", "relu", {"u"}, {"v"}).conv("b", "v", "w", 4, 4);
  g.node("Add", "add", {"v", "w"}, {"s"})
      .node("Concat", "concat", {"s", "k"}, {"t"}, attrs({{"axis", std::int64_t{1}}}))
      .conv("c", "t", "z", 5, 4)
      .node("Sigmoid", "sigmoid", {"z"}, {"p"})
      .conv("d", "p", "y", 4, 2);
  return g.build({"y", "v", "t", "p"});
}

Prepared calibrated_network(const Config &config) {
  Prepared p = prepare(network(), config);
  calibrate_on(p, GraphBuilder::ramp({1, 4, 3, 3}));
  return p;
}

/// Larger than what calibration has seen.
Tensor loud() {
  Tensor x = GraphBuilder::ramp({1, 4, 3, 3});
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] *= -20;
  return x;
}

/// Values on the grid of `name`, as integers.
std::set<std::int64_t> integers(const graph::Graph &g, const std::string &name, const Tensor &values) {
  const QuantizerPtr grid = value_named(g, name).quantizer;
  std::set<std::int64_t> found;
  for (const float v : float_values(values, name.c_str()))
    found.insert(std::lround(static_cast<double>(v) / grid->scale()) + grid->zero_point());
  return found;
}

void integers_have_so_many_bits(void **) {
  for (const char *recipe : kRecipes)
    for (const std::int64_t bits : {2, 4, 7}) {
      const graph::Graph g = convert(calibrated_network(with_bits(recipe, bits)), nullptr);
      const Tensor x = loud();
      const std::vector<Tensor> y = graph::evaluate(g, std::span(&x, 1));
      const char *names[] = {"", "v", "t", "p"};
      for (std::size_t i = 1; i < 4; ++i) {
        const std::set<std::int64_t> found = integers(g, names[i], y[i]);
        const bool is_signed = value_named(g, names[i]).quantizer->dtype() == QTN_INT8;
        const std::int64_t lo = is_signed ? -(1 << (bits - 1)) : 0, hi = lo + (1 << bits) - 1;
        if (*found.begin() < lo || *found.rbegin() > hi)
          fail_test(recipe, ", ", bits, " bits: ", names[i], " has integers from ", *found.begin(), " to ",
                    *found.rbegin());
      }
      for (const char *weight : {"a.weight_quantized", "d.weight_quantized"})
        for (const std::int64_t q : int_values(value_named(g, weight).constant, weight))
          if (q < -(1 << (bits - 1)) || q >= 1 << (bits - 1)) fail_test(recipe, ": ", weight, " has ", q);
      const QuantizerPtr of_input = value_named(g, "x").quantizer;
      if (of_input->scale() * 100 > 2) fail_test(recipe, ": the input has a scale of ", of_input->scale());
    }
}

/// [-1, 2] in 15 steps, and in 255 where nothing limits them.
void grids_fill_the_bits(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 1, 1, 2}).constant("one", floats({1, 1, 1, 1}, {1}));
  builder.node("Conv", "a", {"x", "one"}, {"u"}).node("Conv", "b", {"u", "one"}, {"y"});
  Prepared p = prepare(builder.build({"y"}), with_bits("onnx", 4));
  calibrate_on(p, floats({1, 1, 1, 2}, {-1, 2}));
  const graph::Graph g = convert(p, nullptr);
  const QuantizerPtr u = value_named(g, "u").quantizer, x = value_named(g, "x").quantizer;
  assert_true(u->scale() == static_cast<double>(0.2f) && u->zero_point() == 5);
  assert_true(x->scale() == static_cast<double>(static_cast<float>(3.0 / 255)) && x->zero_point() == 85);
  const Tensor one = value_named(g, "one_quantized").constant;
  assert_int_equal(int_values(one, "one")[0], 7);
}

void a_bounded_function_fills_its_range(void **) {
  for (const char *recipe : {"fbgemm", "tflite"}) {
    const graph::Graph g = convert(calibrated_network(with_bits(recipe, 4)), nullptr);
    const QuantizerPtr p = value_named(g, "p").quantizer;
    assert_true(p->scale() == 1.0 / 16);
    assert_int_equal(p->zero_point(), p->dtype() == QTN_INT8 ? -8 : 0);
    const Tensor x = loud();
    const std::set<std::int64_t> found = integers(g, "p", graph::evaluate(g, std::span(&x, 1))[3]);
    assert_int_equal(*found.rbegin() - *found.begin(), 15);
  }
}

void engines_agree(void **) {
  for (const char *recipe : kRecipes) {
    const graph::Graph g = convert(calibrated_network(with_bits(recipe, 4)), nullptr);
    const runtime::Session native(g, {});
    const Tensor quiet = GraphBuilder::ramp({1, 4, 3, 3}), extreme = loud();
    for (const Tensor *x : {&quiet, &extreme}) {
      const Tensor *inputs[] = {x};
      const std::vector<Tensor> want = graph::evaluate(g, std::span(x, 1)), got = native.run(inputs);
      for (std::size_t i = 0; i < want.size(); ++i)
        if (float_values(got[i], "got") != float_values(want[i], "want"))
          fail_test(recipe, ": engines differ in output ", i);
    }
  }
}

/// QuantizeLinear knows all of its type: it is the Clip before it that keeps the integers few.
void files_keep_the_bits(void **) {
  const graph::Graph g = convert(calibrated_network(with_bits("onnx", 4)), nullptr);
  const Tensor x = loud();
  const std::vector<Tensor> want = graph::evaluate(g, std::span(&x, 1));
  for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
    const std::string bytes = onnx::serialize(g, {.format = format});
    const graph::Graph read = onnx::parse(std::as_bytes(std::span(bytes)), "");
    const std::vector<Tensor> got = graph::evaluate(read, std::span(&x, 1));
    for (std::size_t i = 0; i < want.size(); ++i)
      if (float_values(got[i], "got") != float_values(want[i], "want"))
        fail_test("format ", static_cast<int>(format), ": output ", i, " differs");
  }
}

void bits_are_checked(void **) {
  Config config("onnx");
  const auto set = [&](const Attrs &a) { config.set("*", &a); };
  expect_error(QTN_EINVAL, "weight_bits is 1, not from 2 to 8", [&] {
    set(attrs({{"weight_bits", std::int64_t{1}}}));
  });
  expect_error(QTN_EINVAL, "activation_bits is 9", [&] { set(attrs({{"activation_bits", std::int64_t{9}}})); });
  expect_error(QTN_EUNSUPPORTED, "activation_bits is for types of 8 bits, not for int16", [&] {
    set(attrs({{"activation_bits", std::int64_t{4}}, {"activation_dtype", "int16"}}));
  });
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(integers_have_so_many_bits),
      cmocka_unit_test(grids_fill_the_bits),
      cmocka_unit_test(a_bounded_function_fills_its_range),
      cmocka_unit_test(engines_agree),
      cmocka_unit_test(files_keep_the_bits),
      cmocka_unit_test(bits_are_checked),
  };
  return cmocka_run_group_tests_name("few_bits", tests, nullptr, nullptr);
}
