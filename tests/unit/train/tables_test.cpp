// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings learn: the rows that were read, by the gradient of a mean of squares, and no others.
#include <algorithm>

#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

constexpr std::int64_t kRows = 5, kPlaces = 4, kWidth = 3, kBatch = 2;
constexpr double kRate = 0.25;

Tensor number(std::int64_t value) { return Tensor::from<std::int64_t>(QTN_INT64, {}, std::span(&value, 1)); }

/// y = words[ids] + positions[0, 1 ...], where positions follow from the shape of the input.
graph::Graph network() {
  return GraphBuilder()
      .input("x", {-1, -1})
      .constant("words", varied({kRows, kWidth}, 1))
      .constant("positions", varied({kPlaces, kWidth}, 2))
      .constant("zero", number(0))
      .constant("one", number(1))
      .node("Cast", "cast", {"x"}, {"ids"}, attrs({{"to", std::int64_t{7}}}))
      .node("Gather", "look_up", {"words", "ids"}, {"of_words"})
      .node("Shape", "shape", {"x"}, {"sizes"})
      .node("Gather", "size", {"sizes", "one"}, {"length"})
      .node("Range", "range", {"zero", "length", "one"}, {"places"})
      .node("Gather", "place", {"positions", "places"}, {"of_places"})
      .node("Add", "add", {"of_words", "of_places"}, {"y"})
      .build({"y"});
}

const Tensor &table(const graph::Graph &g, const std::string &name) {
  const auto found = std::ranges::find(g.values, name, &graph::Value::name);
  assert_true(found != g.values.end());
  return found->constant;
}

void rows_that_are_read_learn(void **) {
  Tensor x(QTN_FLOAT32, {kBatch, 3});
  const int ids[] = {4, 0, 4, 1, 0, 4};
  std::copy_n(ids, 6, x.as<float>());
  const Tensor words = varied({kRows, kWidth}, 1), positions = varied({kPlaces, kWidth}, 2),
               target = varied({kBatch, 3, kWidth}, 3);
  Tensor want_words = words.clone(), want_positions = positions.clone();
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < kWidth; ++j) {
      const std::int64_t word = ids[i] * kWidth + j, place = i % 3 * kWidth + j;
      const double y = static_cast<double>(words.as<const float>()[word]) + positions.as<const float>()[place];
      const auto step = static_cast<float>(kRate * 2 * (y - target.as<const float>()[i * kWidth + j]) / 18);
      want_words.as<float>()[word] -= step;
      want_positions.as<float>()[place] -= step;
    }
  Trainer trainer(network(), attrs({{"loss", "mse"}, {"lr", kRate}}));
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  trainer.backward(inputs, targets);
  trainer.update();
  const graph::Graph learned = trainer.snapshot();
  for (const auto &[name, want] : {std::pair("words", want_words), {"positions", want_positions}})
    for (std::int64_t i = 0; i < want.count(); ++i) {
      const float got = table(learned, name).as<const float>()[i];
      if (std::fabs(got - want.as<const float>()[i]) > 1e-6f)
        fail_test(name, " ", i, " is ", got, ", not ", want.as<const float>()[i]);
    }
}

}  // namespace
}  // namespace qtn::train

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::train::rows_that_are_read_learn)};
  return cmocka_run_group_tests_name("train/tables", tests, nullptr, nullptr);
}
