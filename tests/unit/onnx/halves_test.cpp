// SPDX-License-Identifier: Apache-2.0
// Constants that a file has in 16 bits: those that stay floats have these in the file that is written, too.
#include "graph/pipelines.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr std::int64_t kSide = 64;
constexpr std::size_t kCount = kSide * kSide;

/// Codes with what they mean: 1, about a third, -2, the least number, the largest one.
struct Half {
  qdtype dtype;
  std::uint16_t codes[5];
  float values[5];
};
constexpr Half kHalf{QTN_FLOAT16,
                     {0x3C00, 0x3555, 0xC000, 0x0001, 0x7BFF},
                     {1.0f, 0.333251953125f, -2.0f, 5.9604644775390625e-08f, 65504.0f}};
constexpr Half kBrain{QTN_BFLOAT16,
                      {0x3F80, 0x3EAB, 0xC000, 0x0001, 0x7F7F},
                      {1.0f, 0.333984375f, -2.0f, 9.18354962e-41f, 3.38953139e+38f}};

template <class T>
std::vector<T> repeated(const T (&values)[5], std::size_t count = kCount) {
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(values[i * i % 5]);
  return all;
}

/// y = x W, where W is cast to float32.
ModelText cast_weights(const Half &half, std::int64_t rows = kSide) {
  ModelText model;
  model.nodes = {{"Cast", {"w"}, {"w_cast"}, "cast", {}, {int_attribute("to", QTN_FLOAT32)}},
                 {"MatMul", {"x", "w_cast"}, {"y"}, "product"}};
  model.initializers = {
      raw_tensor("w", half.dtype, {rows, kSide}, repeated(half.codes, static_cast<std::size_t>(rows * kSide)))};
  model.shape = {3, rows};
  return model;
}

/// The same, all in that type.
ModelText narrow_network(const Half &half) {
  ModelText model = cast_weights(half);
  model.nodes = {{"MatMul", {"x", "w"}, {"y"}, "product"}};
  model.input_type = model.output_type = half.dtype;
  return model;
}

graph::Graph simplified(const std::string &file) {
  graph::Graph g = parse(file);
  graph::run_passes(g, graph::Pipeline::simplification);
  return g;
}

const graph::Node &product(const graph::Graph &g) {
  for (const graph::Node &node : g.nodes)
    if (std::string_view(node.op->name) == "MatMul") return node;
  fail_test("no product");
  std::abort();
}

const graph::Value &weights(const graph::Graph &g) { return g.value(product(g).inputs[1]); }

void expect_values(const graph::Graph &g, const std::vector<float> &values) {
  const Tensor &w = weights(g).constant;
  assert_int_equal(w.dtype(), QTN_FLOAT32);
  assert_int_equal(w.count(), values.size());
  assert_memory_equal(w.data(), values.data(), w.nbytes());
}

bool in_two_bytes(const std::string &file) { return file.size() < kCount * 2 + 1000; }

/// The same elements whenever it is read, and from the first file on the same bytes.
void round_trip(const graph::Graph &g, const Half &half) {
  const std::string file = onnx::serialize(g, {});
  assert_true(in_two_bytes(file));
  expect_values(simplified(file), repeated(half.values));
  assert_true(onnx::serialize(parse(file), {}) == file);
  assert_true(in_two_bytes(onnx::serialize(simplified(file), {})));
}

void halves_stay_halves(void **) {
  for (const Half &half : {kHalf, kBrain})
    for (const ModelText &model : {cast_weights(half), narrow_network(half)}) {
      round_trip(parse(model.bytes()), half);
      round_trip(simplified(model.bytes()), half);
    }
}

/// What is turned at load holds what it held.
void turned(void **) {
  ModelText model = cast_weights(kHalf);
  model.nodes.insert(model.nodes.begin() + 1, {"Transpose", {"w_cast"}, {"w_turned"}, "turn"});
  model.nodes.back().inputs[1] = "w_turned";
  const std::string file = onnx::serialize(simplified(model.bytes()), {});
  assert_true(in_two_bytes(file));
  const graph::Graph back = simplified(file);
  assert_int_equal(back.nodes.size(), 1);
  const float *turned = weights(back).constant.as<const float>();
  const std::vector<float> values = repeated(kHalf.values);
  for (std::size_t i = 0; i < kCount; ++i) assert_true(turned[i] == values[i % kSide * kSide + i / kSide]);
}

/// It does not grow with every file.
void name_of_the_weights(void **) {
  std::string file = narrow_network(kHalf).bytes();
  for (int i = 0; i < 3; ++i) file = onnx::serialize(simplified(file), {});
  assert_string_equal(weights(parse(file)).name.c_str(), "w_float32");
}

/// One element with a bit more than 16 bits hold, and all of them are floats in the file.
void changed_elements(void **) {
  graph::Graph g = simplified(cast_weights(kHalf).bytes());
  Tensor &w = g.value(product(g).inputs[1]).constant;
  w = w.clone();
  w.as<float>()[kCount - 1] = 1 + 0x1p-11f;
  const std::string file = onnx::serialize(g, {});
  assert_true(file.size() > kCount * 4);
  assert_true(weights(parse(file)).constant.as<const float>()[kCount - 1] == 1 + 0x1p-11f);
}

/// Nodes cost more than they save, and a file that has floats gets floats.
void what_stays(void **) {
  const graph::Graph few = simplified(cast_weights(kHalf, 15).bytes());
  assert_true(onnx::serialize(few, {}).size() > 15 * kSide * 4);

  ModelText floats = cast_weights(kHalf);
  floats.nodes = {{"MatMul", {"x", "w"}, {"y"}, "product"}};
  floats.initializers = {float_tensor("w", {kSide, kSide}, repeated(kHalf.values))};
  assert_true(onnx::serialize(parse(floats.bytes()), {}).size() > kCount * 4);
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::halves_stay_halves),  cmocka_unit_test(qtn::turned),
      cmocka_unit_test(qtn::name_of_the_weights), cmocka_unit_test(qtn::changed_elements),
      cmocka_unit_test(qtn::what_stays),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
