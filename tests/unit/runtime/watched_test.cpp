// SPDX-License-Identifier: Apache-2.0
// What a watched run shows is what the graph means.
#include "runtime/watched.hpp"

#include "../sums.hpp"
#include "graph/evaluate.hpp"
#include "support.hpp"

namespace qtn::runtime {
namespace {

using namespace qtn::test;

/// Steps of every kind that a value may come from: inputs, operators, views, constants that follow from shapes, plain
/// integers.
graph::Graph network() {
  GraphBuilder b;
  b.input("x", {-1, 4, 6, 6});
  add_conv(b, "conv", "x", "u", {4, 4, 3, 3}, attrs({{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}));
  b.node("Relu", "relu", {"u"}, {"v"}).node("Flatten", "flatten", {"v"}, {"flat"});
  b.node("Shape", "shape", {"v"}, {"sizes"}).node("ConstantOfShape", "zeros", {"sizes"}, {"z"});
  b.node("Add", "add", {"v", "z"}, {"s"}).node("GlobalAveragePool", "pool", {"s"}, {"y"});
  return b.build({"y", "flat"});
}

std::vector<graph::ValueId> all_values(const graph::Graph &g) {
  std::vector<graph::ValueId> values;
  for (std::size_t v = 0; v < g.values.size(); ++v)
    if (!g.values[v].is_constant()) values.push_back(static_cast<graph::ValueId>(v));
  return values;
}

using Seen = std::map<graph::ValueId, Tensor>;

Seen run(Watched &watched, const Tensor &x) {
  Seen seen;
  watched.run(std::span(&x, 1),
              [&](graph::ValueId v, const Tensor &t) { assert_true(seen.emplace(v, t.clone()).second); });
  return seen;
}

void shows_what_is_computed(void **) {
  graph::Graph g = network();
  Watched watched(g, all_values(g));
  for (const std::int64_t batch : {1, 3, 1}) {
    const Tensor x = random({batch, 4, 6, 6}, -1, 1, static_cast<unsigned>(batch));
    const Seen seen = run(watched, x);
    g.outputs = all_values(g);
    const std::vector<Tensor> want = graph::evaluate(g, std::span(&x, 1));
    for (std::size_t i = 0; i < want.size(); ++i) {
      const bool real = want[i].dtype() == QTN_FLOAT32;
      assert_int_equal(seen.count(g.outputs[i]), real);
      if (real && !equal_but_for_sums(seen.at(g.outputs[i]), want[i]))
        fail_test(g.value(g.outputs[i]).name, " is another");
    }
  }
}

void shows_nothing_else(void **) {
  const graph::Graph g = network();
  Watched watched(g, {g.nodes[1].outputs[0]});
  const Seen seen = run(watched, random({2, 4, 6, 6}, -1, 1, 1));
  assert_int_equal(seen.size(), 1);
  assert_int_equal(seen.begin()->first, g.nodes[1].outputs[0]);
}

void goes_on_after_an_exception(void **) {
  const graph::Graph g = network();
  Watched watched(g, all_values(g));
  const Tensor x = random({1, 4, 6, 6}, -1, 1, 1);
  const Seen before = run(watched, x);
  expect_error(QTN_EINVAL, "enough", [&] {
    watched.run(std::span(&x, 1), [&](graph::ValueId v, const Tensor &) {
      if (v == g.nodes[0].outputs[0]) fail(QTN_EINVAL, "enough");
    });
  });
  const Seen after = run(watched, x);
  for (const auto &[v, t] : before) expect_equal(after.at(v), t, g.value(v).name);
}

}  // namespace
}  // namespace qtn::runtime

int main() {
  using namespace qtn::runtime;
  const CMUnitTest tests[] = {
      cmocka_unit_test(shows_what_is_computed),
      cmocka_unit_test(shows_nothing_else),
      cmocka_unit_test(goes_on_after_an_exception),
  };
  return cmocka_run_group_tests_name("watched", tests, nullptr, nullptr);
}
