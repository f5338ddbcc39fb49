// SPDX-License-Identifier: Apache-2.0
// Which outputs tell how near a quantized network is to the float one.
#include "quant/search/steady_outputs.hpp"

#include "graph_builder.hpp"
#include "networks.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// Scores of 12 places, the two best scores, their places and what stands there.
GraphBuilder detector() {
  GraphBuilder b;
  b.input("x", {1, 12})
      .constant("w", normal({12, 12}, 1))
      .constant("two", Tensor::from<std::int64_t>(QTN_INT64, {1}, Ints{2}));
  b.constant("bent", normal({12, 12}, 2, 0.3f));
  b.node("MatMul", "score", {"x", "w"}, {"scores"});
  b.node("TopK", "best", {"scores", "two"}, {"kept", "places"});
  b.node("MatMul", "position", {"x", "bent"}, {"positions"});
  b.node("GatherElements", "of_the_best", {"positions", "places"}, {"boxes"}, attrs({{"axis", std::int64_t{1}}}));
  return b;
}

void behind_choices_they_are_not(void **) {
  const graph::Graph g = detector().build({"scores", "kept", "places", "boxes"});
  assert_true((steady_outputs(g) == std::vector<bool>{true, true, false, false}));
}

void choices_reach_through_shapes(void **) {
  GraphBuilder b;
  b.input("x", {1, 12}).constant("zero", Tensor::scalar(0.0f));
  b.node("Greater", "above", {"x", "zero"}, {"mask"}).node("NonZero", "places", {"mask"}, {"found"});
  b.node("Shape", "number", {"found"}, {"n"}).node("Cast", "real", {"n"}, {"y"}, attrs({{"to", std::int64_t{1}}}));
  b.node("Shape", "size", {"x"}, {"s"}).node("Cast", "also_real", {"s"}, {"z"}, attrs({{"to", std::int64_t{1}}}));
  assert_true((steady_outputs(b.build({"y", "z"})) == std::vector<bool>{false, true}));
}

/// A mask of floats, as formulas of activations have it, chooses no element.
void masks_choose_nothing(void **) {
  GraphBuilder b;
  b.input("x", {1, 12}).constant("zero", Tensor::scalar(0.0f)).constant("two", Tensor::scalar(2.0f));
  b.node("Greater", "above", {"x", "zero"}, {"mask"}).node("Mul", "double", {"x", "two"}, {"d"});
  b.node("Where", "bent", {"mask", "x", "d"}, {"y"});
  assert_true((steady_outputs(b.build({"y"})) == std::vector<bool>{true}));
}

/// Masks that are made from tokens are exact, and so is what they count; what is largest behind them is not.
void tokens_are_exact(void **) {
  GraphBuilder b;
  b.input("tokens", {1, 5}, QTN_INT64)
      .constant("table", normal({9, 4}, 3))
      .constant("pad", Tensor::from<std::int64_t>(QTN_INT64, {}, Ints{0}));
  b.node("Gather", "embedding", {"table", "tokens"}, {"x"}).node("Equal", "is_pad", {"tokens", "pad"}, {"mask"});
  b.node("Cast", "count", {"mask"}, {"n"}, attrs({{"to", std::int64_t{7}}}))
      .node("Cast", "real", {"n"}, {"y"}, attrs({{"to", std::int64_t{1}}}));
  b.node("ArgMax", "largest", {"x"}, {"i"}).node("Cast", "also_real", {"i"}, {"z"}, attrs({{"to", std::int64_t{1}}}));
  assert_true((steady_outputs(b.build({"x", "y", "z"})) == std::vector<bool>{true, true, false}));
}

/// Where all are, they are what there is.
void all_count_where_none_would(void **) {
  assert_true((steady_outputs(detector().build({"places", "boxes"})) == std::vector<bool>{true, true}));
}

void the_worst_steady_output_is_what_a_target_reaches(void **) {
  const graph::Graph g = detector().build({"scores", "boxes"});
  const Samples samples{6, [](std::size_t i) {
                          return std::vector<Tensor>{normal({1, 12}, 10 + static_cast<unsigned>(i))};
                        }};
  const Quantized q = quantize(g, Config("onnx"), samples, nullptr, {});
  const Accuracy &accuracy = *q.report.accuracy;
  assert_true((accuracy.steady == std::vector<bool>{true, false}));
  assert_true(accuracy.worst_db() == accuracy.of_output(0).sqnr_db());
  assert_true(accuracy.sqnr_db() == accuracy.worst_db());
}

/// The ONNX numbers of float16 and double.
void floats_of_other_widths_are_judged(void **) {
  for (const std::int64_t to : {10, 11}) {
    GraphBuilder b;
    b.input("x", {2, 12}).constant("w", normal({12, 12}, 1));
    b.node("MatMul", "score", {"x", "w"}, {"scores"}).node("Cast", "other", {"scores"}, {"y"}, attrs({{"to", to}}));
    const Samples samples{6, [](std::size_t i) {
                            return std::vector<Tensor>{normal({2, 12}, 10 + static_cast<unsigned>(i))};
                          }};
    const Quantized q = quantize(b.build({"y"}), Config("onnx"), samples, nullptr, {});
    const Accuracy &accuracy = *q.report.accuracy;
    assert_true((accuracy.steady == std::vector<bool>{true}));
    assert_true(accuracy.rows > 0);
    assert_true(accuracy.worst_db() > 30 && accuracy.worst_db() < 80);
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(behind_choices_they_are_not),
      cmocka_unit_test(choices_reach_through_shapes),
      cmocka_unit_test(masks_choose_nothing),
      cmocka_unit_test(tokens_are_exact),
      cmocka_unit_test(all_count_where_none_would),
      cmocka_unit_test(the_worst_steady_output_is_what_a_target_reaches),
      cmocka_unit_test(floats_of_other_widths_are_judged),
  };
  return cmocka_run_group_tests_name("steady outputs", tests, nullptr, nullptr);
}
