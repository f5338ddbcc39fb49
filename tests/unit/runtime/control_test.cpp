// SPDX-License-Identifier: Apache-2.0
// Control flow, functions of a model, and shapes that depend on data: both engines give what ONNX Runtime gives, run
// after run with other shapes and other ways through the graph, also when the model has been written and read again.
#include <string>
#include <thread>

#include "graph/graph.hpp"
#include "onnx/onnx.hpp"
#include "ops/support.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/plan_cache.hpp"
#include "runtime/session.hpp"
#include "runtime/watched.hpp"

namespace qtn::test {
namespace {

nlohmann::json all_cases() { return golden("control/control.json").at("cases"); }

graph::Graph load(const std::string &name) { return onnx::load(QTN_GOLDEN_DIR "/control/" + name + ".onnx"); }

void expect_runs(const runtime::Session &session, const nlohmann::json &runs, const std::string &what) {
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::vector<Tensor> inputs;
    for (const auto &x : runs[r].at("inputs")) inputs.push_back(tensor_of(x));
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    const std::vector<Tensor> got = session.run(pointers);
    for (std::size_t o = 0; o < got.size(); ++o)
      expect_equal(got[o], tensor_of(runs[r].at("outputs").at(o)), 0, cat(what, ", run ", r, ", output ", o));
  }
}

void as_onnx_runtime(void **) {
  const auto cases = all_cases();
  assert_true(cases.size() >= 11);
  for (const auto &test : cases) {
    const std::string name = test.at("name");
    for (const auto engine : {runtime::Engine::reference, runtime::Engine::native}) {
      const runtime::Session session(load(name), {engine, 1});
      // The second time, plans and divisions of the graph are those of the first.
      for (int again = 0; again < 2; ++again)
        expect_runs(session, test.at("runs"), cat(name, engine == runtime::Engine::native ? ", native" : ""));
    }
  }
}

void written_and_read_again(void **) {
  for (const auto &test : all_cases()) {
    const std::string name = test.at("name");
    for (const int opset : {name == "hertz_on_a_grid" ? 17 : 13, 21}) {  // which first has MelWeightMatrix
      std::string bytes = onnx::serialize(load(name), {opset});
      const graph::Graph once = onnx::parse(std::as_bytes(std::span(bytes)), "");
      expect_runs(runtime::Session(once, {}), test.at("runs"), cat(name, " at opset ", opset));
      // Names do not grow.
      assert_true(onnx::serialize(once, {opset}) == bytes);
    }
  }
}

void many_threads(void **) {
  for (const auto &test : all_cases()) {
    const runtime::Session session(load(test.at("name")), {});
    std::vector<std::thread> threads;
    std::atomic<int> failed = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        try {
          for (int i = 0; i < 20; ++i)
            for (const auto &run : test.at("runs")) {
              std::vector<Tensor> inputs;
              for (const auto &x : run.at("inputs")) inputs.push_back(tensor_of(x));
              std::vector<const Tensor *> pointers;
              for (const Tensor &x : inputs) pointers.push_back(&x);
              const std::vector<Tensor> got = session.run(pointers);
              for (std::size_t o = 0; o < got.size(); ++o)
                if (!equal(got[o], tensor_of(run.at("outputs").at(o)))) ++failed;
            }
        } catch (const std::exception &) {
          ++failed;
        }
      });
    for (std::thread &thread : threads) thread.join();
    if (failed != 0) fail_test(std::string(test.at("name")), ": ", failed.load(), " runs of four threads failed");
  }
}

// Calibration sees values on both sides of a node that no plan can pass.
void values_are_shown(void **) {
  const graph::Graph g = load("convolution_between");
  std::vector<graph::ValueId> all;
  for (std::size_t v = 0; v < g.values.size(); ++v)
    if (!g.values[v].is_constant()) all.push_back(static_cast<graph::ValueId>(v));
  runtime::Watched watched(g, all);
  const auto cases = all_cases();
  const auto test =
      std::ranges::find_if(cases, [](const auto &one) { return one.at("name") == "convolution_between"; });
  assert_true(test != cases.end());
  for (const auto &run : test->at("runs")) {
    std::vector<Tensor> inputs;
    for (const auto &x : run.at("inputs")) inputs.push_back(tensor_of(x));
    std::map<std::string, Tensor> seen;
    watched.run(inputs, [&](std::int32_t v, const Tensor &t) { seen[g.value(v).name] = t.clone(); });
    for (const char *name : {"x", "c", "made", "y"}) assert_true(seen.contains(name));
    expect_equal(seen.at("x"), inputs[0], 0, "x");
    expect_equal(seen.at("y"), tensor_of(run.at("outputs")[0]), 0, "y");
  }
}

/// Which may be wrong in files, and which other engines then believe.
void branches_say_no_shapes(void **) {
  const std::string bytes = onnx::serialize(load("if_by_input"), {21});
  const graph::Graph g = onnx::parse(std::as_bytes(std::span(bytes)), "");
  for (const auto &body : g.nodes.at(0).bodies) assert_false(body->value(body->outputs.at(0)).shape.has_value());
}

// A part that meets ever new values is divided where they would say a shape; a whole model has plans for them all.
void counters_have_no_plans(void **) {
  GraphBuilder b;
  b.input("x", {-1}).input("end", {1}, QTN_INT64).constant("begin", ints({0}));
  b.node("Slice", "some", {"x", "begin", "end"}, {"y"});
  const graph::Graph g = b.build({"y"});
  const Tensor x(QTN_FLOAT32, {12});
  for (const bool is_part : {false, true}) {
    runtime::PlanCache plans(g, isa(), {}, {is_part});
    int refused = 0;
    for (std::int64_t n = 1; n <= 12; ++n) {
      const Tensor end = ints({n});
      const Tensor *inputs[] = {&x, &end};
      runtime::Outlook by_types, by_values;
      if (plans.plan_for(inputs, by_types, by_values)) {
        assert_int_equal(refused, 0);
      } else {
        ++refused;
        assert_int_equal(by_types.known.stops.size(), 1);
        assert_true(by_values.values.empty());
      }
    }
    assert_int_equal(refused, is_part ? 8 : 0);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::as_onnx_runtime),
                              cmocka_unit_test(qtn::test::written_and_read_again),
                              cmocka_unit_test(qtn::test::branches_say_no_shapes),
                              cmocka_unit_test(qtn::test::many_threads), cmocka_unit_test(qtn::test::values_are_shown),
                              cmocka_unit_test(qtn::test::counters_have_no_plans)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
