// SPDX-License-Identifier: Apache-2.0
// Values that are read as integers and in float.
#include "quant/copies.hpp"

#include "networks.hpp"
#include "onnx/onnx.hpp"
#include "quant/quantize.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// An input that is an output comes back as it went in, under its name, in a file too.
void inputs_that_are_outputs(void **) {
  GraphBuilder b;
  b.input("x", {1, 8}).constant("w", normal({8, 3}, 1)).node("MatMul", "product", {"x", "w"}, {"y"});
  const graph::Graph g = b.build({"y", "x"});
  const Quantized q = quantize(g, Config("onnx"), normal_samples({1, 8}, 8), nullptr, {});
  const std::string file = onnx::serialize(q.graph, {});
  const graph::Graph read = onnx::parse({reinterpret_cast<const std::byte *>(file.data()), file.size()}, "");
  const Tensor x = normal({1, 8}, 7);
  const Tensor *inputs[] = {&x};
  for (const graph::Graph *of : {&q.graph, &read})
    for (const runtime::Engine engine : {runtime::Engine::native, runtime::Engine::reference}) {
      assert_string_equal(of->value(of->outputs[1]).name.c_str(), "x");
      const std::vector<Tensor> outputs = runtime::Session(*of, {.engine = engine}).run(inputs);
      assert_true(equal(outputs[1], x));
      assert_false(equal(outputs[0], graph::evaluate(g, std::span(&x, 1))[0]));  // in integers
    }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(inputs_that_are_outputs)};
  return cmocka_run_group_tests_name("quant/copies", tests, nullptr, nullptr);
}
