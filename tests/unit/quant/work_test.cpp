// SPDX-License-Identifier: Apache-2.0
// What layers have to do, and that of two which cost the same the one with less to do is left in float.
#include "quant/search/work.hpp"

#include "networks.hpp"
#include "quant/search/precision.hpp"
#include "quant/search/sensitivity.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr double kOfElement = 16;

void work_follows_from_shapes(void **) {
  GraphBuilder b;
  b.input("x", {-1, 6, 5, 5}).constant("w", normal({4, 3, 3, 3}, 1)).constant("m", normal({9, 2}, 2));
  b.node("Conv", "conv", {"x", "w"}, {"a"}, attrs({{"group", std::int64_t{2}}}));  // 4 channels of 3x3
  b.node("Relu", "relu", {"a"}, {"r"});
  b.constant("rows", ints({-1, 9})).node("Reshape", "reshape", {"r", "rows"}, {"f"});
  b.node("MatMul", "matmul", {"f", "m"}, {"y"});
  const std::vector<Tensor> two = {normal({2, 6, 5, 5}, 3)};
  const std::vector<double> work = work_of_nodes(b.build({"y"}), two);
  assert_true(work ==
              std::vector<double>({72 * (kOfElement + 27), 72 * kOfElement, 72 * kOfElement, 16 * (kOfElement + 9)}));
}

void unknown_shapes_are_like_the_others(void **) {
  GraphBuilder b;
  b.input("x", {100, 100})
      .node("Relu", "relu", {"x"}, {"r"})
      .node("Neg", "neg", {"r"}, {"n"})
      .node("NonZero", "places", {"n"}, {"y"});
  const std::vector<double> work = work_of_nodes(b.build({"y"}), std::vector<Tensor>{normal({100, 100}, 1)});
  assert_true(work == std::vector<double>(3, 10000 * kOfElement));
}

/// Either layer in float is enough. That of many channels costs more, for its input has a feature which is large and
/// hardly counts; but it has to do far more.
void layers_with_little_to_do_fall_first(void **) {
  const std::int64_t wide = 512;
  const Tensor weight = normal({4, wide}, 1);
  for (std::int64_t c = 0; c < wide; ++c) weight.as<float>()[c] *= 0.01f;
  GraphBuilder b;
  b.input("x", {1, 4}).constant("w", weight).constant("v", normal({wide, 4}, 2));
  b.node("MatMul", "wide", {"x", "w"}, {"h"}).node("MatMul", "narrow", {"h", "v"}, {"y"});
  const graph::Graph g = b.build({"y"});
  const Samples samples = {8, [](std::size_t s) {
                             const Tensor x = normal({1, 4}, static_cast<unsigned>(s + 1));
                             x.as<float>()[0] *= 3;
                             return std::vector<Tensor>{x};
                           }};
  PreparedModel p = calibrated(g, Config("onnx"), samples);
  const graph::Graph quantized = convert(p, nullptr);
  const std::vector<Sensitivity> costs = measure_sensitivity(p.graph, quantized, samples);
  const std::vector<double> work = work_of_nodes(quantized, samples.read(0));
  const double of_wide = costs[0].alone.relative(), of_narrow = costs[1].alone.relative();
  if (!(of_wide > of_narrow && of_wide / work[0] < of_narrow / work[1]))
    fail_test("wide costs ", of_wide, " in ", work[0], ", narrow ", of_narrow, " in ", work[1]);
  const double whole = difference(p.graph, quantized, samples).sqnr_db();
  const Goal goal(p.graph, samples, samples, {.sqnr_db = whole + 1, .top1 = {}});
  const std::vector<FallenLayer> fallen = reach(p, goal, to_float(p), {});
  assert_true(fallen.size() == 1 && fallen[0].node == "narrow");
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(work_follows_from_shapes),
      cmocka_unit_test(unknown_shapes_are_like_the_others),
      cmocka_unit_test(layers_with_little_to_do_fall_first),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
