// SPDX-License-Identifier: Apache-2.0
// Which equations of Einsum are products of matrices, that these give what Einsum gives, in integers and in training too.
#include <cmath>

#include "base/error.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "quant/calibrate.hpp"
#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"

namespace qtn::test {
namespace {

/// y = Einsum(a, b), where b is a constant or an input, too.
graph::Graph einsum(const char *equation, const Shape &a, const Shape &b, bool constant) {
  GraphBuilder builder;
  builder.input("a", a);
  if (constant)
    builder.constant("b", GraphBuilder::ramp(b));
  else
    builder.input("b", b);
  return builder.node("Einsum", "e", {"a", "b"}, {"y"}, attrs({{"equation", equation}})).build({"y"});
}

std::vector<std::string> op_names(const graph::Graph &g) {
  std::vector<std::string> names;
  for (const graph::Node &node : g.nodes) names.push_back(node.op->name);
  return names;
}

/// `ops`: what becomes of it with two inputs; `with_constant`, where b is one.
void expect(const char *equation, const Shape &a, const Shape &b, const std::vector<std::string> &ops,
            const std::vector<std::string> &with_constant) {
  for (const bool constant : {false, true}) {
    const graph::Graph g = einsum(equation, a, b, constant);
    graph::Graph made = g;
    graph::make_products_of_einsums(made);
    std::string names;
    for (const std::string &name : op_names(made)) names += name + " ";
    if (op_names(made) != (constant ? with_constant : ops)) fail_test(equation, ": becomes ", names);
    std::vector<Tensor> inputs{GraphBuilder::ramp(a)};
    if (!constant) inputs.push_back(GraphBuilder::ramp(b));
    const Tensor y = graph::evaluate(g, inputs)[0], z = graph::evaluate(made, inputs)[0];
    assert_true(y.shape() == z.shape());
    for (std::int64_t i = 0; i < y.count(); ++i)
      if (!(std::fabs(y.as<float>()[i] - z.as<float>()[i]) <= 1e-5f))
        fail_test(equation, ": element ", i, " is ", z.as<float>()[i], ", not ", y.as<float>()[i]);
  }
}

void expect(const char *equation, const Shape &a, const Shape &b, const std::vector<std::string> &ops) {
  expect(equation, a, b, ops, ops);
}

void products(void **) {
  expect("ij,jk->ik", {3, 4}, {4, 5}, {"MatMul"});
  expect("bij, jk -> bik", {2, 3, 4}, {4, 5}, {"MatMul"});
  expect("...j,jk->...k", {2, 3, 4}, {4, 5}, {"MatMul"});
  expect("bij,kj->bik", {2, 3, 4}, {5, 4}, {"Transpose", "MatMul"}, {"MatMul"});
  expect("bhqd,bhkd->bhqk", {2, 3, 4, 5}, {2, 3, 6, 5}, {"Transpose", "MatMul"}, {"MatMul"});
  expect("bhqk,bhkd->bhqd", {2, 3, 4, 6}, {2, 3, 6, 5}, {"MatMul"});
  expect("...qd,...kd->...qk", {2, 3, 4, 5}, {3, 6, 5}, {"Transpose", "MatMul"}, {"MatMul"});
  expect("bji,bjk->bik", {2, 4, 3}, {2, 4, 5}, {"Transpose", "MatMul"});
}

/// Ellipses of different ranks, which the longer one says of the result.
void ellipses(void **) {
  expect("...ij,...jk->i...k", {3, 4}, {2, 4, 5}, {"MatMul", "Transpose"});
  expect("...ij,...jk->i...k", {2, 3, 4}, {4, 5}, {"MatMul", "Transpose"});
}

/// A length that is summed may be 1 only where the batch is.
void open_batches(void **) {
  for (const auto &[length, op] : {std::pair(1, "Einsum"), {6, "MatMul"}}) {
    GraphBuilder b;
    b.input("x", {-1, 6}).constant("b", GraphBuilder::ramp({length, 6}));
    b.node("Transpose", "turn", {"x"}, {"a"}, attrs({{"perm", std::vector<std::int64_t>{1, 0}}}));
    b.node("Einsum", "e", {length == 1 ? "a" : "x", "b"}, {"y"}, attrs({{"equation", "ij,jk->ik"}}));
    const graph::Graph g = b.build({"y"});
    graph::Graph made = g;
    graph::make_products_of_einsums(made);
    assert_string_equal(made.nodes.back().op->name, op);
    for (const std::int64_t batch : {1, 2, 3}) {
      const std::vector<Tensor> x{GraphBuilder::ramp({batch, 6})};
      const Tensor want = graph::evaluate(g, x)[0], got = graph::evaluate(made, x)[0];
      assert_true(want.shape() == got.shape());
      for (std::int64_t i = 0; i < want.count(); ++i)
        assert_true(std::fabs(want.as<float>()[i] - got.as<float>()[i]) <= 1e-5f);
    }
  }
}

/// In another order, which moves say.
void moved_products(void **) {
  expect("ij,jk->ki", {3, 4}, {4, 5}, {"Transpose", "Transpose", "MatMul"}, {"Transpose", "MatMul"});
  expect("bij,bjk->ibk", {2, 3, 4}, {2, 4, 5}, {"MatMul", "Transpose"});
  expect("b...j,b...k->b...jk", {2, 3, 4}, {2, 3, 5}, {"Einsum"});
  // Attention as Keras writes it: keys and queries, then weights and values.
  expect("aecd,abcd->acbe", {2, 6, 3, 4}, {2, 5, 3, 4}, {"Transpose", "Transpose", "MatMul"}, {"Transpose", "MatMul"});
  expect("acbe,aecd->abcd", {2, 3, 5, 6}, {2, 6, 3, 4}, {"Transpose", "MatMul", "Transpose"}, {"MatMul", "Transpose"});
}

/// With several axes of one kind.
void products_of_several_axes(void **) {
  expect("abc,cde->abde", {2, 3, 4}, {4, 5, 6}, {"Reshape", "MatMul", "Reshape"}, {"MatMul", "Reshape"});
  expect("abcd,cde->abe", {2, 3, 4, 5}, {4, 5, 6}, {"Reshape", "Reshape", "MatMul"}, {"Reshape", "MatMul"});
  expect("abcd,dce->abe", {2, 3, 4, 5}, {5, 4, 6}, {"Transpose", "Reshape", "Reshape", "MatMul"},
         {"Transpose", "Reshape", "MatMul"});
  expect("ijk,jkl->il", {2, 3, 4}, {3, 4, 5}, {"Reshape", "Reshape", "MatMul"}, {"Reshape", "MatMul"});
  expect("bcij,bjk->bcik", {2, 3, 4, 5}, {2, 5, 6}, {"Reshape", "MatMul", "Reshape"});  // MatMul would take b for c
  expect("bijk,bjlkm->bmil", {2, 3, 4, 5}, {2, 4, 6, 5, 7},
         {"Transpose", "Transpose", "Reshape", "Reshape", "MatMul", "Reshape", "Transpose"},
         {"Transpose", "Reshape", "MatMul", "Reshape", "Transpose"});
}

void others(void **) {
  expect("ij,ij->ij", {3, 4}, {3, 4}, {"Einsum"});      // nothing is summed
  expect("ij,jk->k", {3, 4}, {4, 5}, {"Einsum"});       // i is summed alone
  expect("ii,ik->ik", {3, 3}, {3, 5}, {"Einsum"});      // a diagonal
  expect("ij,jk->ik", {3, 1}, {4, 5}, {"Einsum"});      // an axis that Einsum repeats
  expect("bj,bjk->bk", {2, 4}, {2, 4, 5}, {"Einsum"});  // no rows
}

/// The weights of a product, whichever way they lie, run in 8 bits and are trained.
void quantized_and_trained(void **) {
  for (const char *equation : {"bj,jk->bk", "bj,kj->bk"}) {
    const graph::Graph g = einsum(equation, {1, 6}, {6, 6}, true);
    quant::PreparedModel p = quant::prepare(g, quant::Config("onnx"));
    const Tensor x = GraphBuilder::ramp({1, 6});
    const Tensor *inputs[] = {&x};
    quant::calibrate(p, inputs);
    const graph::Graph q = quant::convert(p, nullptr);
    assert_int_equal(q.nodes.size(), 1);
    assert_true(graph::integer_form(q, q.nodes[0]) == graph::IntegerForm::linear);
    assert_int_equal(train::Trainer(g, Attrs()).parameters().size(), 1);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(products),
                              cmocka_unit_test(moved_products),
                              cmocka_unit_test(products_of_several_axes),
                              cmocka_unit_test(others),
                              cmocka_unit_test(ellipses),
                              cmocka_unit_test(open_batches),
                              cmocka_unit_test(quantized_and_trained)};
  return cmocka_run_group_tests_name("graph/einsum", tests, nullptr, nullptr);
}
