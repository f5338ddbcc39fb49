// SPDX-License-Identifier: Apache-2.0
// What does not depend on an input is computed before a run, as far as that takes time and memory in proportion to the
// model.
#include <algorithm>

#include "graph/evaluate.hpp"
#include "graph/pipelines.hpp"
#include "ops/support.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

std::size_t count_of(const graph::Graph &g, std::string_view op) {
  return static_cast<std::size_t>(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const graph::Node &node) { return node.op->name == op; }));
}

graph::Graph for_runs(graph::Graph g) {
  graph::run_passes(g, graph::Pipeline::execution);
  return g;
}

/// What both engines and the definitions make of x, which is the same.
void expect_agreement(const graph::Graph &g, const Tensor &x) {
  const std::vector<Tensor> want = graph::evaluate(g, std::vector<Tensor>{x});
  for (const auto engine : {runtime::Engine::native, runtime::Engine::reference}) {
    const runtime::Session session(g, {engine, 1});
    const Tensor *inputs[] = {&x};
    const std::vector<Tensor> got = session.run(inputs);
    for (std::size_t o = 0; o < want.size(); ++o) expect_equal(got[o], want[o], 0, g.value(g.outputs[o]).name);
  }
}

// Positions of a transformer, which the weights of each layer multiply: 2^29 products a layer.
graph::Graph layers_of_positions(std::size_t layers) {
  GraphBuilder b;
  b.input("x", {512, 1024}).constant("positions", GraphBuilder::ramp({512, 1024}));
  std::string before = "x";
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i), after = i + 1 < layers ? "v" + n : "y";
    b.constant("w" + n, GraphBuilder::ramp({1024, 1024}));
    b.node("MatMul", "projected" + n, {"positions", "w" + n}, {"p" + n});
    b.node("Add", "added" + n, {before, "p" + n}, {after});
    before = after;
  }
  return b.build({"y"});
}

void products_of_layers(void **) {
  const graph::Graph g = layers_of_positions(6);
  assert_int_equal(count_of(for_runs(g), "MatMul"), 0);
  expect_agreement(g, GraphBuilder::ramp({512, 1024}));
}

// Which no BLAS multiplies: they would take a second.
void integers_are_left(void **) {
  GraphBuilder b;
  b.input("x", {1024, 1024}, QTN_INT32);
  for (const char *name : {"a", "b"}) b.constant(name, Tensor(QTN_INT32, {1024, 1024}));
  b.node("MatMul", "product", {"a", "b"}, {"p"}).node("Add", "added", {"x", "p"}, {"y"});
  assert_int_equal(count_of(for_runs(b.build({"y"})), "MatMul"), 1);
}

// A graph's output is made by a node, which copies what others read.
void outputs_are_copies(void **) {
  GraphBuilder b;
  b.input("x", {4, 4}).constant("a", GraphBuilder::ramp({4, 4})).constant("rows", Tensor::from_ints(Ints{1, 3}));
  b.node("MatMul", "product", {"a", "a"}, {"p"}).node("Neg", "negative", {"p"}, {"n"});
  b.node("Split", "parts", {"n", "rows"}, {"few", "many"}).node("Identity", "same", {"a"}, {"i"});
  b.node("Add", "added", {"x", "n"}, {"y"});
  const graph::Graph g = b.build({"p", "y", "few", "i"}), folded = for_runs(g);
  assert_int_equal(count_of(folded, "MatMul") + count_of(folded, "Neg"), 0);
  assert_int_equal(count_of(folded, "Identity"), 2);
  for (std::size_t o = 0; o < g.outputs.size(); ++o)
    assert_string_equal(folded.value(folded.outputs[o]).name.c_str(), g.value(g.outputs[o]).name.c_str());
  expect_agreement(g, GraphBuilder::ramp({4, 4}));
}

// An input may say that a Dropout drops, which no session does.
void dropouts_that_may_drop(void **) {
  GraphBuilder b;
  b.input("x", {2, 3}).input("training", {}, QTN_BOOL).constant("ratio", Tensor::scalar(0.5f));
  b.node("Dropout", "dropout", {"x", "ratio", "training"}, {"d"}).node("Neg", "negative", {"d"}, {"y"});
  const graph::Graph g = b.build({"y"});
  const Tensor x = GraphBuilder::ramp({2, 3});
  for (const auto engine : {runtime::Engine::native, runtime::Engine::reference})
    for (const bool training : {false, true}) {
      Tensor said(QTN_BOOL, {});
      *said.as<bool>() = training;
      const auto run = [&] {
        const Tensor *inputs[] = {&x, &said};
        return runtime::Session(g, {engine, 1}).run(inputs)[0];
      };
      if (training)
        expect_error(QTN_EUNSUPPORTED, {"Dropout", "training_mode"}, run);
      else
        expect_equal(run(), graph::evaluate(g, std::vector<Tensor>{x, said})[0], 0, "y");
    }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::products_of_layers), cmocka_unit_test(qtn::test::integers_are_left),
      cmocka_unit_test(qtn::test::outputs_are_copies), cmocka_unit_test(qtn::test::dropouts_that_may_drop)};
  return cmocka_run_group_tests_name("graph/folding", tests, nullptr, nullptr);
}
