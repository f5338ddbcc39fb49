// SPDX-License-Identifier: Apache-2.0
// Networks that files may say otherwise than exporters do: both engines against ONNX Runtime and ONNX's reference, as they
// are, and written and read again.
#include "onnx/onnx.hpp"
#include "ops/support.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

const std::string kFolder = QTN_GOLDEN_DIR "/imported/";

void expect_outputs(const graph::Graph &g, runtime::Engine engine, const nlohmann::json &test,
                    const std::string &what) {
  std::vector<Tensor> inputs;
  for (const auto &x : test.at("inputs")) inputs.push_back(tensor_of(x));
  std::vector<const Tensor *> pointers;
  for (const Tensor &x : inputs) pointers.push_back(&x);
  const std::vector<Tensor> got = runtime::Session(g, {engine, 1}).run(pointers);
  assert_int_equal(got.size(), test.at("outputs").size());
  for (std::size_t o = 0; o < got.size(); ++o)
    expect_equal(got[o], tensor_of(test.at("outputs").at(o)), 1e-6, cat(what, ", output ", o));
}

template <class F>
void for_each_case(F &&f) {
  const nlohmann::json cases = read_json(kFolder + "imported.json").at("cases");
  assert_true(cases.size() > 40);
  for (const auto &test : cases) {
    const std::string name = test.at("name");
    f(test, name, onnx::load(kFolder + name + ".onnx"));
  }
}

void as_they_are(void **) {
  for_each_case([](const nlohmann::json &test, const std::string &name, const graph::Graph &g) {
    expect_outputs(g, runtime::Engine::reference, test, name);
    expect_outputs(g, runtime::Engine::native, test, name + ", native");
  });
}

void written_and_read_again(void **) {
  for_each_case([](const nlohmann::json &test, const std::string &name, const graph::Graph &g) {
    for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
      const std::string bytes = onnx::serialize(g, {.format = format});
      expect_outputs(onnx::parse(std::as_bytes(std::span(bytes)), ""), runtime::Engine::native, test,
                     cat(name, format == onnx::Format::qdq ? " written" : " written on integers"));
    }
  });
}

/// Other engines refuse a file that says another type than its nodes make.
void types_of_outputs(void **) {
  for_each_case([](const nlohmann::json &test, const std::string &name, const graph::Graph &g) {
    for (std::size_t o = 0; o < g.outputs.size(); ++o) {
      const qdtype got = g.value(g.outputs[o]).dtype.value_or(QTN_FLOAT32),
                   want = tensor_of(test.at("outputs").at(o)).dtype();
      if (got != want) fail_test(name, ", output ", o, " is ", dtype_name(got), ", want ", dtype_name(want));
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::as_they_are),
      cmocka_unit_test(qtn::test::written_and_read_again),
      cmocka_unit_test(qtn::test::types_of_outputs),
  };
  return cmocka_run_group_tests_name("runtime/imported", tests, nullptr, nullptr);
}
