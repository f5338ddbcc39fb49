// SPDX-License-Identifier: Apache-2.0
// Activations that exporters write as formulas: which become operators, and that the numbers stay those of the formula.
#include <cmath>

#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

/// A formula of x under construction: each method adds a node and returns the name of its result.
class Formula {
 public:
  Formula() { b_.input("x", {3, 40}); }

  std::string number(double v) {
    const std::string name = next("number");
    b_.constant(name, Tensor::scalar(static_cast<float>(v)));
    return name;
  }
  /// One for each column of x.
  std::string list(std::int64_t length = 40) {
    const std::string name = next("list");
    b_.constant(name, GraphBuilder::ramp({length}));
    return name;
  }
  std::string mean(const std::string &of, std::int64_t axis = -1) {
    const std::string name = next("axes");
    b_.constant(name, Tensor::from_ints(Ints{axis}));
    return node("ReduceMean", {of, name});
  }
  std::string node(const char *op, std::vector<std::string> inputs, const Attrs &a = {}) {
    const std::string y = next("y");
    b_.node(op, "node_" + y, std::move(inputs), {y}, a);
    return y;
  }
  graph::Graph build(const std::vector<std::string> &outputs) { return b_.build(outputs); }

 private:
  std::string next(const std::string &name) { return name + std::to_string(count_++); }

  GraphBuilder b_;
  int count_ = 0;
};

void expect(Formula &f, const std::string &y, const char *op, std::vector<std::string> more = {}) {
  more.insert(more.begin(), y);
  const graph::Graph g = f.build(more);
  graph::Graph named = g;
  graph::name_formulas(named);
  graph::name_normalizations(named);
  if (op) {
    assert_int_equal(named.nodes.size(), 1);
    assert_string_equal(named.nodes[0].op->name, op);
  } else {
    assert_int_equal(named.nodes.size(), g.nodes.size());
  }
  Tensor x(QTN_FLOAT32, {3, 40});
  for (int i = 0; i < 120; ++i) x.as<float>()[i] = 0.15f * static_cast<float>(i - 60);
  const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0];
  const Tensor got = graph::evaluate(named, std::vector<Tensor>{x})[0];
  for (int i = 0; i < 120; ++i) assert_true(std::fabs(got.as<float>()[i] - want.as<float>()[i]) <= 2e-6f);
}

std::string erf(Formula &f, double divisor = 1.4142135381698608) {
  return f.node("Add", {f.node("Erf", {f.node("Div", {"x", f.number(divisor)})}), f.number(1)});
}

void test_gelu(void **) {
  Formula torch, halved_first, by_product, other_scale, other_sum, seen;
  expect(torch, torch.node("Mul", {torch.node("Mul", {"x", erf(torch)}), torch.number(0.5)}), "Gelu");
  const std::string half = halved_first.node("Mul", {"x", halved_first.number(0.5)});
  expect(halved_first, halved_first.node("Mul", {half, erf(halved_first)}), "Gelu");
  const std::string scaled = by_product.node("Mul", {by_product.number(0.7071067690849304), "x"});
  const std::string sum = by_product.node("Add", {by_product.number(1), by_product.node("Erf", {scaled})});
  expect(by_product, by_product.node("Mul", {by_product.node("Div", {sum, by_product.number(2)}), "x"}), "Gelu");

  expect(other_scale,
         other_scale.node("Mul", {other_scale.node("Mul", {"x", erf(other_scale, 1.5)}), other_scale.number(0.5)}),
         nullptr);
  expect(other_sum, other_sum.node("Mul", {other_sum.node("Mul", {"x", erf(other_sum)}), other_sum.number(0.25)}),
         nullptr);
  // What is an output of the network stays.
  const std::string part = erf(seen);
  expect(seen, seen.node("Mul", {seen.node("Mul", {"x", part}), seen.number(0.5)}), nullptr, {part});
}

std::string tanh(Formula &f, const std::string &cube) {
  const std::string sum = f.node("Add", {"x", f.node("Mul", {cube, f.number(0.044715)})});
  return f.node("Add", {f.node("Tanh", {f.node("Mul", {sum, f.number(0.7978845608)})}), f.number(1)});
}

void test_gelu_by_tanh(void **) {
  Formula pow, products, factored, other_power;
  const std::string half = pow.node("Mul", {pow.number(0.5), "x"});
  expect(pow, pow.node("Mul", {half, tanh(pow, pow.node("Pow", {"x", pow.number(3)}))}), "Gelu");
  const std::string cube = products.node("Mul", {products.node("Mul", {"x", "x"}), "x"});
  expect(products, products.node("Mul", {products.node("Mul", {"x", tanh(products, cube)}), products.number(0.5)}),
         "Gelu");
  const std::string square = factored.node("Mul", {factored.node("Mul", {"x", factored.number(0.044715)}), "x"});
  const std::string inner = factored.node("Mul", {factored.node("Mul", {"x", factored.number(0.79788456)}),
                                                  factored.node("Add", {square, factored.number(1)})});
  const std::string gate = factored.node("Add", {factored.node("Tanh", {inner}), factored.number(1)});
  expect(factored, factored.node("Mul", {factored.node("Mul", {"x", gate}), factored.number(0.5)}), "Gelu");
  expect(other_power,
         other_power.node(
             "Mul",
             {other_power.node("Mul", {"x", tanh(other_power, other_power.node("Pow", {"x", other_power.number(2)}))}),
              other_power.number(0.5)}),
         nullptr);
}

void test_gates(void **) {
  Formula silu, quick, of_other, doubled, mish, hard, six, clamped;
  expect(silu, silu.node("Mul", {silu.node("Sigmoid", {"x"}), "x"}), "Swish");
  expect(quick, quick.node("Mul", {"x", quick.node("Sigmoid", {quick.node("Mul", {"x", quick.number(1.702)})})}),
         "Swish");
  const std::string other = of_other.node("Neg", {"x"});
  expect(of_other, of_other.node("Mul", {"x", of_other.node("Sigmoid", {other})}), nullptr);
  const std::string twice =
      doubled.node("Mul", {doubled.node("Mul", {"x", doubled.number(2)}), doubled.node("Sigmoid", {"x"})});
  expect(doubled, twice, nullptr);
  expect(mish, mish.node("Mul", {"x", mish.node("Tanh", {mish.node("Softplus", {"x"})})}), "Mish");
  const Attrs sixth = attrs({{"alpha", 1.0 / 6}, {"beta", 0.5}});
  expect(hard, hard.node("Mul", {"x", hard.node("HardSigmoid", {"x"}, sixth)}), "HardSwish");
  for (Formula *f : {&six, &clamped}) {
    const std::string sum = f->node("Add", {"x", f->number(3)}),
                      clip = f->node("Clip", {sum, f->number(0), f->number(6)});
    const std::string y = f->node("Div", {f->node("Mul", {"x", clip}), f->number(6)});
    if (f == &six) {
      expect(six, y, "HardSwish");
      continue;
    }
    graph::Graph g = f->build({y});
    graph::fuse_clamps(g);
    graph::name_formulas(g);
    assert_int_equal(g.nodes.size(), 1);
  }
}

/// v / sqrt(mean of of^2 + epsilon), in the forms that exporters have
std::string normalized(Formula &f, int form, const std::string &v, const std::string &of) {
  const std::string square = form == 0 ? f.node("Mul", {of, of}) : f.node("Pow", {of, f.number(2)});
  const std::string sum = f.node("Add", {f.mean(square), f.number(1e-5)});
  if (form == 2) return f.node("Mul", {f.node("Pow", {sum, f.number(-0.5)}), v});
  const std::string root = f.node("Sqrt", {sum});
  if (form == 1) return f.node("Div", {v, root});
  return f.node("Mul", {v, form == 3 ? f.node("Div", {f.number(1), root}) : f.node("Reciprocal", {root})});
}

void test_normalizations(void **) {
  for (const int form : {0, 1, 2, 3}) {
    Formula shifted, scaled, twice, rms;
    const std::string away = shifted.node("Sub", {"x", shifted.mean("x")});
    const std::string product = shifted.node("Mul", {normalized(shifted, form, away, away), shifted.list()});
    expect(shifted, shifted.node("Add", {shifted.list(), product}), "LayerNormalization");
    const std::string difference = scaled.node("Sub", {"x", scaled.mean("x", 1)});
    expect(scaled, scaled.node("Mul", {scaled.list(), normalized(scaled, form, difference, difference)}),
           "LayerNormalization");
    const std::string mean = twice.mean("x"), one = twice.node("Sub", {"x", mean}),
                      two = twice.node("Sub", {"x", mean});
    expect(twice, twice.node("Mul", {normalized(twice, form, one, two), twice.list()}), "LayerNormalization");
    expect(rms, rms.node("Mul", {rms.list(), normalized(rms, form, "x", "x")}), "RMSNormalization");
  }
}

/// As TensorFlow writes it: x f + (shift - mean f), where f is the scale over the deviation.
void test_affine_normalizations(void **) {
  const auto written = [](Formula &f, bool shifts, const std::string &of_product, const std::string &centered) {
    const std::string mean = f.mean("x"), away = f.node("Sub", {"x", centered.empty() ? mean : centered});
    const std::string sum = f.node("Add", {f.mean(f.node("Mul", {away, away})), f.number(1e-3)});
    const std::string factor = f.node("Mul", {f.node("Reciprocal", {f.node("Sqrt", {sum})}), f.list()});
    const std::string moved = f.node("Mul", {mean, factor});
    const std::string offset = shifts ? f.node("Sub", {f.list(), moved}) : f.node("Neg", {moved});
    return f.node("Add", {f.node("Mul", {of_product, factor}), offset});
  };
  Formula shifted, plain, of_other, off_center;
  expect(shifted, written(shifted, true, "x", ""), "LayerNormalization");
  expect(plain, written(plain, false, "x", ""), "LayerNormalization");
  expect(of_other, written(of_other, true, of_other.node("Neg", {"x"}), ""), nullptr);
  expect(off_center, written(off_center, true, "x", off_center.mean("x", 0)), nullptr);

  GraphBuilder pooled;  // where the mean of each row is that of an image with one axis
  pooled.input("x", {2, 3, 8}).constant("scale", GraphBuilder::ramp({8})).constant("epsilon", Tensor::scalar(1e-3f));
  pooled.node("GlobalAveragePool", "mean", {"x"}, {"m"}).node("Sub", "sub", {"x", "m"}, {"d"});
  pooled.node("Mul", "square", {"d", "d"}, {"s"}).node("GlobalAveragePool", "variance", {"s"}, {"v"});
  pooled.node("Add", "add", {"v", "epsilon"}, {"w"}).node("Sqrt", "sqrt", {"w"}, {"r"});
  pooled.node("Div", "div", {"d", "r"}, {"n"}).node("Mul", "scaled", {"n", "scale"}, {"y"});
  const graph::Graph g = pooled.build({"y"});
  graph::Graph named = g;
  graph::name_normalizations(named);
  assert_int_equal(named.nodes.size(), 1);
  assert_string_equal(named.nodes[0].op->name, "LayerNormalization");
  const std::vector<Tensor> x{GraphBuilder::ramp({2, 3, 8})};
  const Tensor want = graph::evaluate(g, x)[0], got = graph::evaluate(named, x)[0];
  for (std::int64_t i = 0; i < want.count(); ++i)
    assert_true(std::fabs(got.as<float>()[i] - want.as<float>()[i]) <= 2e-6f);
}

void test_other_sums(void **) {
  Formula first_axis, not_centered, of_other;
  // What is centered along another axis is still divided by the root of a mean of squares along this one.
  const std::string across = first_axis.node("Sub", {"x", first_axis.mean("x", 0)});
  graph::Graph g =
      first_axis.build({first_axis.node("Mul", {normalized(first_axis, 0, across, across), first_axis.list()})});
  graph::name_normalizations(g);
  assert_int_equal(g.nodes.size(), 3);
  assert_string_equal(g.nodes[2].op->name, "RMSNormalization");
  const std::string away = not_centered.node("Sub", {"x", not_centered.mean("x")});
  expect(not_centered, not_centered.node("Mul", {normalized(not_centered, 0, "x", away), not_centered.list()}),
         nullptr);
  const std::string other = of_other.node("Neg", {"x"});
  expect(of_other, of_other.node("Mul", {normalized(of_other, 0, other, "x"), of_other.list()}), nullptr);
}

/// A row of one number that meets a list becomes as long as that; no normalization does that.
void test_unknown_lengths(void **) {
  GraphBuilder b;
  b.input("x", {3, -1}).constant("scale", GraphBuilder::ramp({4})).constant("epsilon", Tensor::scalar(1e-5f));
  b.constant("axes", Tensor::from_ints(Ints{-1}));
  b.node("Mul", "square", {"x", "x"}, {"s"}).node("ReduceMean", "mean", {"s", "axes"}, {"m"});
  b.node("Add", "add", {"m", "epsilon"}, {"a"}).node("Sqrt", "sqrt", {"a"}, {"r"});
  b.node("Div", "div", {"x", "r"}, {"q"}).node("Mul", "mul", {"q", "scale"}, {"y"});
  graph::Graph g = b.build({"y"});
  graph::name_normalizations(g);
  assert_int_equal(g.nodes.size(), 6);
}

/// A grid between the nodes rounds, and no operator does that.
void test_grids(void **) {
  Formula f;
  const std::string gate = f.node("Sigmoid", {"x"});
  graph::Graph g = f.build({f.node("Mul", {"x", gate})});
  for (graph::Value &value : g.values)
    if (value.name == gate)
      value.quantizer = std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{1.0 / 255},
                                                    std::vector<std::int64_t>{0}, Numerics::onnx);
  graph::name_formulas(g);
  assert_int_equal(g.nodes.size(), 2);
}

/// Rows of a table in integers are floats, also where no shape says so.
void test_rows_of_integers(void **) {
  const auto grid = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, 0, std::vector<double>{0.01},
                                                std::vector<std::int64_t>{0}, Numerics::onnx);
  GraphBuilder b;
  b.input("x", {-1, -1}).constant("table", quantize(GraphBuilder::ramp({9, 8}), grid));
  b.node("Gather", "rows", {"table", "x"}, {"r"})
      .node("Sigmoid", "gate", {"r"}, {"g"})
      .node("Mul", "mul", {"r", "g"}, {"y"});
  graph::Graph g = b.build({"y"});
  graph::name_formulas(g);
  assert_int_equal(g.nodes.size(), 2);
  assert_string_equal(g.nodes[1].op->name, "Swish");
}

/// Several open dimensions, and an axis that is counted from the front.
void test_open_lengths(void **) {
  GraphBuilder b;
  b.input("x", {-1, -1, 40}).constant("two", Tensor::scalar(2)).constant("axis", Tensor::from_ints(Ints{2}));
  b.constant("epsilon", Tensor::scalar(1e-6f)).constant("scale", GraphBuilder::ramp({40}));
  b.node("Pow", "pow", {"x", "two"}, {"square"}).node("ReduceMean", "reduce", {"square", "axis"}, {"mean"});
  b.node("Add", "add", {"mean", "epsilon"}, {"sum"}).node("Sqrt", "root", {"sum"}, {"deviation"});
  b.node("Div", "div", {"x", "deviation"}, {"normal"}).node("Mul", "mul", {"normal", "scale"}, {"y"});
  graph::Graph g = b.build({"y"});
  graph::name_normalizations(g);
  assert_int_equal(g.nodes.size(), 1);
  assert_string_equal(g.nodes[0].op->name, "RMSNormalization");
}

/// The length of rows is that of a product behind which they are joined to others, or laid down otherwise.
void test_lengths_behind_moves(void **) {
  for (const bool joined : {false, true}) {
    GraphBuilder b;
    b.input("x", {-1, -1, 8}).constant("w", GraphBuilder::ramp({8, 40})).node("MatMul", "product", {"x", "w"}, {"p"});
    b.constant("rows", Tensor::from_ints(Ints{0, -1, 40}));
    if (joined)
      b.node("Concat", "join", {"p", "p"}, {"c"}, attrs({{"axis", std::int64_t{1}}}));
    else
      b.node("Reshape", "lay", {"p", "rows"}, {"c"});
    b.constant("axis", Tensor::from_ints(Ints{-1})).constant("epsilon", Tensor::scalar(1e-6f));
    b.constant("scale", GraphBuilder::ramp({40})).node("Mul", "multiply", {"c", "c"}, {"square"});
    b.node("ReduceMean", "reduce", {"square", "axis"}, {"mean"}).node("Add", "add", {"mean", "epsilon"}, {"sum"});
    b.node("Sqrt", "root", {"sum"}, {"deviation"}).node("Div", "div", {"c", "deviation"}, {"normal"});
    b.node("Mul", "mul", {"normal", "scale"}, {"y"});
    graph::Graph g = b.build({"y"});
    graph::name_normalizations(g);
    assert_int_equal(g.nodes.size(), 3);
    assert_string_equal(g.nodes[2].op->name, "RMSNormalization");
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_gelu),
                              cmocka_unit_test(test_gelu_by_tanh),
                              cmocka_unit_test(test_gates),
                              cmocka_unit_test(test_normalizations),
                              cmocka_unit_test(test_affine_normalizations),
                              cmocka_unit_test(test_other_sums),
                              cmocka_unit_test(test_unknown_lengths),
                              cmocka_unit_test(test_grids),
                              cmocka_unit_test(test_rows_of_integers),
                              cmocka_unit_test(test_open_lengths),
                              cmocka_unit_test(test_lengths_behind_moves)};
  return cmocka_run_group_tests_name("formulas", tests, nullptr, nullptr);
}
