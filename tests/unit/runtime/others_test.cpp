// SPDX-License-Identifier: Apache-2.0
// Models that other tools quantized: both engines compared with ONNX Runtime, what of a plan is left in float, and what
// comes back when they are written.
#include <cmath>

#include "../sums.hpp"
#include "onnx/onnx.hpp"
#include "ops/support.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

constexpr runtime::Engine kEngines[] = {runtime::Engine::reference, runtime::Engine::native};

struct Others {
  std::string folder = QTN_GOLDEN_DIR "/others/";
  nlohmann::json file = read_json(folder + "others.json"), exceptions = read_json(folder + "exceptions.json");

  graph::Graph load(const nlohmann::json &model) const {
    return onnx::load(folder + model.at("name").get<std::string>() + ".onnx");
  }
  std::vector<Tensor> inputs(const nlohmann::json &model) const {
    std::vector<Tensor> tensors;
    for (const auto &x : file.at("inputs").at(model.at("network").get<std::string>())) tensors.push_back(tensor_of(x));
    return tensors;
  }
};

Tensor run_session(const runtime::Session &session, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  return session.run(inputs)[0].to_contiguous();
}

/// Steps that compute in float, or by an operator's definition, in the order of the plan.
std::vector<std::string> float_steps(const graph::Graph &g, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  const auto profile = nlohmann::json::parse(runtime::Session(g, {runtime::Engine::native, 1}).profile(inputs));
  std::vector<std::string> steps;
  for (const auto &node : profile.at("nodes"))
    if (node.at("dtype") != "int8" && node.at("op") != "Copy") steps.push_back(node.at("op"));
  return steps;
}

/// Elements further apart than the step of the output's grid, and what float32 holds of them.
std::int64_t count_apart(const Tensor &got, const Tensor &want, double step) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const double g = got.as<const float>()[i], w = want.as<const float>()[i];
    if (!(std::abs(g - w) <= step + 3e-7 * (std::abs(w) + step))) ++count;
  }
  return count;
}

// Every element, except for models in exceptions.json, which says how many are not, and why.
void outputs_of_onnx_runtime(void **) {
  const Others others;
  assert_true(others.file.at("models").size() >= 40);
  for (const auto &model : others.file.at("models")) {
    const std::string name = model.at("name");
    const graph::Graph g = others.load(model);
    const std::vector<Tensor> inputs = others.inputs(model);
    std::int64_t apart = 0, elements = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor want = tensor_of(model.at("outputs")[i]);
      std::vector<Tensor> got;
      for (const runtime::Engine engine : kEngines)
        got.push_back(run_session(runtime::Session(g, {engine, 1}), inputs[i]));
      if (float_steps(g, inputs[i]).empty())
        expect_equal(got[1], got[0], 0, name);
      else if (!equal_but_for_sums(got[1], got[0], model.at("step")))
        fail_test(name, ": the engines differ");
      if (got[0].shape() != want.shape()) fail_test(name, ": ", to_string(got[0].shape()));
      apart += count_apart(got[0], want, model.at("step"));
      elements += want.count();
    }
    const auto &listed = others.exceptions.at("apart");
    const std::int64_t expected = listed.contains(name) ? listed.at(name).at("elements").get<std::int64_t>() : 0;
    if (apart != expected) fail_test(name, ": ", apart, " of ", elements, " elements are apart, not ", expected);
  }
}

// None, except for models in exceptions.json.
void steps_in_float(void **) {
  const Others others;
  for (const auto &model : others.file.at("models")) {
    const std::string name = model.at("name");
    std::vector<std::string> expected;
    for (const auto &group : others.exceptions.at("float"))
      if (group.at("models").contains(name)) expected = group.at("models").at(name).get<std::vector<std::string>>();
    const std::vector<std::string> steps = float_steps(others.load(model), others.inputs(model)[0]);
    if (steps != expected)
      fail_test(name, ": steps in float are ", nlohmann::json(steps).dump(), ", not ", nlohmann::json(expected).dump());
  }
}

graph::Graph written_and_read(const graph::Graph &g, const onnx::SaveOptions &options) {
  const std::string bytes = onnx::serialize(g, options);
  return onnx::parse(std::as_bytes(std::span(bytes)), "");
}

void formats_and_opsets(void **) {
  const Others others;
  for (const auto &model : others.file.at("models")) {
    const std::string name = model.at("name");
    const graph::Graph g = others.load(model);
    const Tensor x = others.inputs(model)[0], want = run_session(runtime::Session(g, {}), x);
    for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator})
      for (const int opset : {21, 25}) {
        const graph::Graph back = written_and_read(g, {.opset = opset, .format = format});
        const std::string what =
            cat(name, format == onnx::Format::qdq ? " as QDQ, opset " : " as QOperator, opset ", opset);
        expect_equal(run_session(runtime::Session(back, {}), x), want, 0, what);
        if (float_steps(back, x) != float_steps(g, x)) fail_test(what, ": other steps in float");
      }
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::outputs_of_onnx_runtime),
      cmocka_unit_test(qtn::test::steps_in_float),
      cmocka_unit_test(qtn::test::formats_and_opsets),
  };
  return cmocka_run_group_tests_name("runtime/others", tests, nullptr, nullptr);
}
