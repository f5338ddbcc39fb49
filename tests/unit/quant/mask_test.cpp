// SPDX-License-Identifier: Apache-2.0
// Numbers in place of what is masked, in front of a maximum over places, as encoders of sentences and of points have
// them, or over windows, where they are pads.
#include "quant/mask.hpp"

#include <limits>

#include "networks.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// x [1, 5, 8] by a layer and Relu; `number` at the last two of five places; the maximum over places, and a layer.
graph::Graph encoder(float number) {
  const Tensor places(QTN_BOOL, {1, 5, 1});
  for (std::int64_t i = 0; i < 5; ++i) places.as<bool>()[i] = i > 2;
  GraphBuilder b;
  b.input("x", {1, 5, 8}).constant("w", normal({8, 16}, 1)).constant("v", normal({16, 3}, 2));
  b.constant("places", places)
      .constant("number", Tensor::scalar(number))
      .constant("axes", Tensor::from<std::int64_t>(QTN_INT64, {1}, std::array<std::int64_t, 1>{1}));
  b.node("MatMul", "first", {"x", "w"}, {"a"}).node("Relu", "relu", {"a"}, {"r"});
  b.node("Where", "fill", {"places", "number", "r"}, {"f"});
  b.node("ReduceMax", "most", {"f", "axes"}, {"m"}, attrs({{"keepdims", std::int64_t{0}}}));
  return b.node("MatMul", "last", {"m", "v"}, {"y"}).build({"y"});
}

void masks_do_not_widen_grids(void **) {
  const Samples samples = normal_samples({1, 5, 8}, 16);
  for (const float number : {-1e4f, -1e9f, std::numeric_limits<float>::lowest(), -kInfinity}) {
    const graph::Graph g = encoder(number);
    for (const bool plain : {false, true}) {
      Attrs options;
      options.set("plain", std::int64_t{plain});
      const Quantized q = quantize(g, Config("onnx"), samples, &options, {});
      assert_true(difference(g, q.graph, samples).sqnr_db() > 30);
      assert_true(q.report.fallen.empty());
    }
  }
}

/// A layer, pads of `number` whose amounts are computed from shapes, the maximum over windows, and a layer.
graph::Graph padded_encoder(float number) {
  const auto ints = [](const std::vector<std::int64_t> &values) { return Tensor::from_ints(values); };
  GraphBuilder b;
  b.input("x", {1, 3, 8, 8}).constant("w", normal({4, 3, 1, 1}, 1)).constant("v", normal({2, 4, 1, 1}, 2));
  b.constant("third", ints({2})).constant("ends", ints({0, 0, 1, 1, 0, 0, 1, 1}));
  b.constant("number", Tensor::scalar(number)).node("Conv", "first", {"x", "w"}, {"a"});
  b.node("Shape", "shape", {"a"}, {"dims"}).node("Gather", "height", {"dims", "third"}, {"h"});
  b.node("Div", "one", {"h", "h"}, {"unit"}).node("Mul", "amounts", {"unit", "ends"}, {"pads"});
  b.node("Pad", "pad", {"a", "pads", "number"}, {"p"});
  b.node("MaxPool", "most", {"p"}, {"m"}, attrs({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}));
  return b.node("Conv", "last", {"m", "v"}, {"y"}).build({"y"});
}

void pads_do_not_widen_grids(void **) {
  const Samples samples = normal_samples({1, 3, 8, 8}, 16);
  for (const float number : {-1e9f, std::numeric_limits<float>::lowest(), -kInfinity}) {
    const graph::Graph g = padded_encoder(number);
    const Quantized q = quantize(g, Config("onnx"), samples, nullptr, {});
    assert_true(difference(g, q.graph, samples).sqnr_db() > 30);
    assert_true(q.report.fallen.empty());
    for (const graph::Node &node : q.graph.nodes)
      if (node.op == &ops::kMaxPool) assert_true(q.graph.value(node.outputs[0]).quantizer != nullptr);
  }
}

void what_is_a_mask(void **) {
  const auto seen = make_observer("minmax", {});
  const Tensor none(QTN_FLOAT32, {0});
  assert_false(is_mask(Tensor::scalar(-1e9f), *seen));  // of nothing that was seen
  seen->observe(normal({100}, 3));
  for (const float number : {-1e4f, 1e4f, 1e9f, -kInfinity, kInfinity})
    assert_true(is_mask(Tensor::scalar(number), *seen));
  for (const float number : {0.0f, -100.0f, 9999.0f}) assert_false(is_mask(Tensor::scalar(number), *seen));
  assert_false(is_mask(none, *seen));
  const Tensor mixed(QTN_FLOAT32, {2});
  mixed.as<float>()[0] = -1e9f;
  mixed.as<float>()[1] = 0.5f;
  assert_false(is_mask(mixed, *seen));
  seen->observe(Tensor::scalar(1e6f));
  assert_false(is_mask(Tensor::scalar(-1e7f), *seen));
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(masks_do_not_widen_grids), cmocka_unit_test(pads_do_not_widen_grids),
                              cmocka_unit_test(what_is_a_mask)};
  return cmocka_run_group_tests_name("quant/mask", tests, nullptr, nullptr);
}
