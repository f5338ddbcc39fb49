// SPDX-License-Identifier: Apache-2.0
// What a product adds where that is no constant of one number for each channel: recovery leaves it and the numbers alone.
#include "networks.hpp"
#include "quant/recover/correct.hpp"
#include "quant/recover/equalize.hpp"
#include "quant/recover/links.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// One number for each row, one for each element, and an input.
enum class Addend { rows, matrix, computed };

constexpr Addend kAll[] = {Addend::rows, Addend::matrix, Addend::computed};

Shape shape_of(Addend addend, std::int64_t rows, std::int64_t columns) {
  return addend == Addend::rows ? Shape{rows, 1} : addend == Addend::matrix ? Shape{rows, columns} : Shape{columns};
}

void add(GraphBuilder &b, const std::string &name, Addend addend, const Shape &shape) {
  addend == Addend::computed ? b.input(name, shape) : b.constant(name, normal(shape, 9));
}

/// For all inputs of the graph.
Samples samples_of(const graph::Graph &g) {
  std::vector<Shape> shapes;
  for (const graph::ValueId v : g.inputs) shapes.push_back(*g.value(v).shape);
  return {12, [shapes](std::size_t s) {
            std::vector<Tensor> inputs;
            for (const Shape &shape : shapes)
              inputs.push_back(normal(shape, static_cast<unsigned>(10 * s + inputs.size())));
            return inputs;
          }};
}

/// Spreads the columns of a matrix over four powers of ten.
Tensor spread(const Tensor &weight) {
  for (std::int64_t i = 0; i < weight.count(); ++i)
    weight.as<float>()[i] *= std::pow(10.0f, 4 * static_cast<float>(i % weight.dim(1)) / 7 - 2);
  return weight;
}

void corrections_leave_them(void **) {
  Config config("onnx");
  const Attrs weights_only = attrs({{"mode", "weights_only"}});
  config.set("*", &weights_only);
  for (const Addend addend : kAll) {
    GraphBuilder b;
    b.input("x", {2, 16}).constant("w", normal({16, 64}, 1)).constant("v", normal({64, 4}, 2));
    add(b, "c", addend, shape_of(addend, 2, 64));
    b.node("Gemm", "first", {"x", "w", "c"}, {"u"}).node("Relu", "relu", {"u"}, {"r"});
    b.node("Gemm", "last", {"r", "v"}, {"y"});
    const graph::Graph real = b.build({"y"});
    const Samples samples = samples_of(real);
    PreparedModel p = prepare(real, config);
    calibrate_all(p, samples);
    graph::Graph g = convert(p, nullptr);
    assert_non_null(g.value(node_named(g, "first").inputs[1]).quantizer.get());
    correct(p, g, samples, {.bias = true});
    assert_string_equal(g.value(node_named(g, "first").inputs[2]).name.c_str(), "c");
    assert_int_equal(node_named(g, "last").inputs.size(), 3);
    const double sqnr = difference(real, g, samples).sqnr_db();
    if (sqnr < 30) fail_test(sqnr, " dB");
  }
}

/// Nor to a bias beside a factor alpha.
void offsets_are_not_moved_to_them(void **) {
  const auto expect = [](GraphBuilder &b) {
    const graph::Graph before = [&] {
      graph::Graph g = b.build({"y"});
      graph::run_passes(g, graph::Pipeline::inference);
      return g;
    }();
    graph::Graph after = before;
    const Samples samples = samples_of(before);
    assert_false(absorb_biases(after, samples));
    assert_true(difference(before, after, samples).sqnr_db() > 110);
  };
  const auto first = [] {
    GraphBuilder b;
    b.input("x", {2, 3}).constant("w", normal({3, 8}, 1)).constant("high", floats({8}, std::vector<float>(8, 20)));
    b.node("Gemm", "first", {"x", "w", "high"}, {"u"}).node("Relu", "relu", {"u"}, {"r"});
    b.constant("v", normal({8, 5000}, 2));
    return b;
  };
  for (const Addend addend : kAll) {
    GraphBuilder b = first();
    add(b, "c", addend, shape_of(addend, 2, 5000));
    expect(b.node("Gemm", "last", {"r", "v", "c"}, {"y"}));
  }
  GraphBuilder scaled = first();
  scaled.constant("c", normal({5000}, 3));
  expect(scaled.node("Gemm", "last", {"r", "v", "c"}, {"y"}, attrs({{"alpha", 0.5}})));
  GraphBuilder convolutions;
  convolutions.input("x", {1, 3, 4, 4}).constant("w", normal({8, 3, 1, 1}, 1)).constant("v", normal({5, 8, 1, 1}, 2));
  convolutions.constant("high", floats({8}, std::vector<float>(8, 20))).input("c", {5});
  convolutions.node("Conv", "first", {"x", "w", "high"}, {"u"}).node("Relu", "relu", {"u"}, {"r"});
  expect(convolutions.node("Conv", "last", {"r", "v", "c"}, {"y"}));
}

/// As many rows as columns, so that counting does not tell them apart.
void rows_are_no_channels(void **) {
  GraphBuilder b;
  b.input("x", {8, 4}).constant("w", spread(normal({4, 8}, 1))).constant("c", normal({8, 1}, 2, 3));
  b.constant("v", normal({8, 5}, 3));
  b.node("Gemm", "first", {"x", "w", "c"}, {"u"}).node("Relu", "relu", {"u"}, {"r"});
  graph::Graph before = b.node("Gemm", "last", {"r", "v"}, {"y"}).build({"y"});
  graph::run_passes(before, graph::Pipeline::quantization);
  assert_true(find_links(before).empty());
  graph::Graph after = before;
  equalize_weights(after, [](const graph::Node &) { return true; });
  const double sqnr = difference(before, after, samples_of(before)).sqnr_db();
  if (sqnr < 110) fail_test("the function changed: ", sqnr, " dB");
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(corrections_leave_them),
      cmocka_unit_test(offsets_are_not_moved_to_them),
      cmocka_unit_test(rows_are_no_channels),
  };
  return cmocka_run_group_tests_name("other_biases", tests, nullptr, nullptr);
}
