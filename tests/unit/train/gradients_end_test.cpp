// SPDX-License-Identifier: Apache-2.0
// Where a gradient cannot come through, a trainer says so rather than train a part of the network only.
#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

const Attrs kOptions = attrs({{"loss", "mse"}, {"lr", 0.05}});

Attrs to(qdtype dtype) { return attrs({{"to", static_cast<std::int64_t>(dtype)}}); }

graph::Graph with_cast(const char *op, const Attrs &attributes) {
  return GraphBuilder()
      .input("x", {6, 4})
      .constant("w", varied({4, 4}, 1))
      .constant("v", varied({4, 3}, 2))
      .node("MatMul", "first", {"x", "w"}, {"a"})
      .node(op, "cast", {"a"}, {"b"}, attributes)
      .node("Cast", "back", {"b"}, {"c"}, to(QTN_FLOAT32))
      .node("MatMul", "second", {"c", "v"}, {"y"})
      .build({"y"});
}

std::vector<float> gradient_of_first(const graph::Graph &g) {
  Trainer trainer(g, kOptions);
  const Tensor x = varied({6, 4}, 3), target = varied({6, 3}, 4);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  trainer.backward(inputs, targets);
  return float_values(trainer.parameters()[0].gradient, "gradient");
}

void at_a_cast_to_other_floats(void **) {
  for (const qdtype dtype : {QTN_FLOAT64, QTN_FLOAT16, QTN_BFLOAT16})
    expect_error(QTN_EUNSUPPORTED,
                 cat("trainer: node \"cast\": Cast to ", dtype_name(dtype),
                     " has no gradient, which what comes before \"a\" needs"),
                 [&] { gradient_of_first(with_cast("Cast", to(dtype))); });
}

void not_at_a_cast_to_the_same_type(void **) {
  if (gradient_of_first(with_cast("Cast", to(QTN_FLOAT32))) != gradient_of_first(with_cast("Identity", {})))
    fail_test("a Cast to float32 of float32 has another gradient than Identity");
}

/// As of any other integers.
void at_a_cast_to_integers(void **) {
  for (const float g : gradient_of_first(with_cast("Cast", to(QTN_INT32)))) assert_true(g == 0.0f);
}

void a_ratio_is_a_constant(void **) {
  const graph::Graph g = GraphBuilder()
                             .input("x", {6, 4})
                             .input("ratio", {})
                             .constant("w", varied({4, 4}, 1))
                             .node("MatMul", "first", {"x", "w"}, {"a"})
                             .node("Dropout", "dropout", {"a", "ratio"}, {"y"})
                             .build({"y"});
  Trainer trainer(g, kOptions);
  const Tensor x = varied({6, 4}, 3), ratio = Tensor::scalar(0.5f);
  const Tensor *inputs[] = {&x, &ratio}, *targets[] = {&x};
  expect_error(QTN_EUNSUPPORTED, "trainer: node \"dropout\": the ratio of Dropout, \"ratio\", is not a constant",
               [&] { trainer.backward(inputs, targets); });
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(at_a_cast_to_other_floats),
      cmocka_unit_test(not_at_a_cast_to_the_same_type),
      cmocka_unit_test(at_a_cast_to_integers),
      cmocka_unit_test(a_ratio_is_a_constant),
  };
  return cmocka_run_group_tests_name("train/gradients end", tests, nullptr, nullptr);
}
