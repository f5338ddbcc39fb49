// SPDX-License-Identifier: Apache-2.0
// States that a Loop or Scan only hands on become captured values or constants of its body. What they compute then is
// tested with the other control flow, in runtime.
#include <algorithm>
#include <string>

#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "onnx/onnx.hpp"
#include "ops/support.hpp"

namespace qtn::test {
namespace {

graph::Graph simplified(const std::string &name) {
  graph::Graph g = onnx::load(QTN_GOLDEN_DIR "/control/" + name + ".onnx");
  graph::run_passes(g, graph::Pipeline::simplification);
  return g;
}

const graph::Node &loop_of(const graph::Graph &g) {
  return *std::ranges::find_if(g.nodes, [](const graph::Node &node) { return !node.bodies.empty(); });
}

std::size_t constants_of(const graph::Graph &g) {
  return static_cast<std::size_t>(
      std::ranges::count_if(g.values, [](const graph::Value &value) { return value.is_constant(); }));
}

void handed_on_states_are_captured(void **) {
  const graph::Graph g = simplified("loop_of_invariants");
  const graph::Node &loop = loop_of(g);
  assert_int_equal(loop.captured, 2);               // shift, for two states
  assert_int_equal(loop.inputs.size(), 2 + 2 + 2);  // and what changes, and what is seen
  assert_int_equal(loop.bodies[0]->inputs.size(), 2 + 2 + 2);
  assert_int_equal(loop.bodies[0]->outputs.size(), 1 + 2 + 1);
  assert_int_equal(loop.outputs.size(), 2 + 1);
  assert_int_equal(constants_of(*loop.bodies[0]), 1);
}

void bodies_have_constants(void **) {
  const graph::Graph g = simplified("loops_of_invariants");
  const graph::Node &loop = loop_of(g);
  assert_int_equal(loop.inputs.size(), 2 + 1 + loop.captured);
  assert_int_equal(loop.captured, 1);  // x
  assert_true(constants_of(*loop.bodies[0]) >= 2);
}

void scans_have_them(void **) {
  const graph::Graph g = simplified("scan_of_invariants");
  const graph::Node &scan = loop_of(g);
  assert_int_equal(scan.inputs.size(), 2);
  assert_int_equal(scan.outputs.size(), 2);
}

/// What only a run finds wrong in a stranger's file stays as it is.
void scans_that_make_too_little_stay(void **) {
  graph::Graph g = onnx::load(QTN_GOLDEN_DIR "/control/scan_of_invariants.onnx");
  graph::Node &scan = *std::ranges::find_if(g.nodes, [](const graph::Node &node) { return !node.bodies.empty(); });
  graph::Graph body = *scan.bodies[0];
  body.outputs.resize(1);
  scan.bodies = {std::make_shared<const graph::Graph>(body)};
  scan.outputs.resize(1);
  const std::size_t inputs = scan.inputs.size();
  graph::capture_invariants(g);
  assert_int_equal(loop_of(g).inputs.size(), inputs);
}

void loops_of_nothing_else_are_gone(void **) {
  const graph::Graph g = simplified("loop_of_nothing_else");
  assert_true(std::ranges::all_of(g.nodes, [](const graph::Node &node) { return node.bodies.empty(); }));
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(handed_on_states_are_captured), cmocka_unit_test(bodies_have_constants),
                              cmocka_unit_test(scans_have_them), cmocka_unit_test(scans_that_make_too_little_stay),
                              cmocka_unit_test(loops_of_nothing_else_are_gone)};
  return cmocka_run_group_tests_name("graph/invariants", tests, nullptr, nullptr);
}
