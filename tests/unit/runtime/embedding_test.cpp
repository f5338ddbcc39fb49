// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings in integers: which are taken, and that sessions read the rows that the definition reads.
#include "../sums.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights_only.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

graph::Graph lookup(const Shape &table, qdtype indices, std::int64_t axis = 0) {
  GraphBuilder b;
  b.input("x", {-1, 3}).constant("table", random(table, -2, 2, 5));
  b.node("Cast", "cast", {"x"}, {"i"}, attrs({{"to", static_cast<std::int64_t>(indices)}}));
  b.node("Gather", "gather", {"table", "i"}, {"y"}, attrs({{"axis", axis}}));
  return b.build({"y"});
}

const Tensor &table_of(const graph::Graph &g) { return g.value(node_named(g, "gather").inputs[0]).constant; }

Tensor indices(std::int64_t batch, std::int64_t rows) {
  Tensor x(QTN_FLOAT32, {batch, 3});
  for (std::int64_t i = 0; i < x.count(); ++i)
    x.as<float>()[i] = static_cast<float>(i % 2 ? -(i * 7 % rows) - 1 : i * 11 % rows);
  return x;
}

void expect_rows_of_definition(const graph::Graph &g, std::int64_t rows, const char *kernel) {
  for (const std::int64_t batch : {0, 1, 40}) {
    const Tensor x = indices(batch, rows);
    const Tensor *inputs[] = {&x};
    const Tensor want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0];
    each_isa([&](const std::string &isa) {
      for (const int threads : {1, 3}) {
        const runtime::Session session(g, {runtime::Engine::native, threads});
        expect_equal(session.run(inputs)[0], want, cat(kernel, ", ", isa, ", batch ", batch));
        bool found = false;
        const auto profile = nlohmann::json::parse(session.profile(inputs));
        for (const auto &node : profile.at("nodes")) found |= node.at("kernel") == kernel;
        if (batch > 0 && !found) fail_test("no step of kernel ", kernel);
      }
    });
  }
}

void test_tables(void **) {
  for (const std::int64_t columns : {8, 33, 130})
    for (const qdtype type : {QTN_INT32, QTN_INT64}) {
      const graph::Graph float_graph = lookup({200, columns}, type);
      const graph::Graph g = quant::quantize_dynamic(float_graph, quant::Config("onnx"), {});
      assert_int_equal(table_of(g).dtype(), QTN_INT8);
      assert_int_equal(table_of(g).quantizer()->count(), 200);
      expect_rows_of_definition(g, 200, "embedding");
      expect_rows_of_definition(quant::quantize_weights(float_graph, {}), 200, "embedding");
    }
}

/// One scale, blocks of a row, and 4 bits.
void test_other_grids(void **) {
  quant::Config whole("onnx");
  const Attrs tensor = attrs({{"weight_scheme", "per_tensor_symmetric"}});
  whole.set("op:Gather", &tensor);
  const graph::Graph float_graph = lookup({64, 48}, QTN_INT64);
  const graph::Graph g = quant::quantize_dynamic(float_graph, whole, {});
  assert_int_equal(table_of(g).quantizer()->count(), 1);
  expect_rows_of_definition(g, 64, "embedding");
  const graph::Graph blocks = quant::quantize_weights(float_graph, {.dtype = QTN_INT4, .block_size = 16});
  assert_int_equal(table_of(blocks).dtype(), QTN_INT4);
  assert_int_equal(table_of(blocks).quantizer()->count(), 64 * 3);
  expect_rows_of_definition(blocks, 64, "Gather");
}

void test_what_stays(void **) {
  quant::Config config("onnx");
  config.set("op:Gather", nullptr);
  assert_false(table_of(quant::quantize_dynamic(lookup({200, 16}, QTN_INT64), config, {})).quantized());
  for (const Shape &small : {Shape{100, 7}, Shape{10, 100}, Shape{4096}, Shape{2, 40, 40}})
    assert_false(table_of(quant::quantize_dynamic(lookup(small, QTN_INT64), quant::Config("onnx"), {})).quantized());
  assert_false(
      table_of(quant::quantize_dynamic(lookup({50, 50}, QTN_INT64, 1), quant::Config("onnx"), {})).quantized());
}

void test_rows_that_do_not_exist(void **) {
  const graph::Graph g = quant::quantize_dynamic(lookup({200, 16}, QTN_INT64), quant::Config("onnx"), {});
  for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native})
    for (const float index : {200.0f, -201.0f}) {
      Tensor x = indices(1, 200);
      x.as<float>()[1] = index;
      const Tensor *inputs[] = {&x};
      expect_error(QTN_EINVAL, "is outside dimension 0 of x 200x16", [&] {
        runtime::Session(g, {engine, 1}).run(inputs);
      });
    }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::test_tables), cmocka_unit_test(qtn::test::test_other_grids),
                              cmocka_unit_test(qtn::test::test_what_stays),
                              cmocka_unit_test(qtn::test::test_rows_that_do_not_exist)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
