// SPDX-License-Identifier: Apache-2.0
// Files that leave the first dimension open load where some batch may fit, even if none does that is tried, and what no
// batch changes is found at once.
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

using Ints = std::vector<std::int64_t>;

std::string list(const std::string &name, const Ints &values) {
  return raw_tensor(name, QTN_INT64, {static_cast<std::int64_t>(values.size())}, values);
}

/// x [batch, 8] as clips of 11 frames, whose mean is y.
ModelText clips() {
  return {.opset = 18,
          .nodes = {{"Reshape", {"x", "clips"}, {"c"}}, {"ReduceMean", {"c", "axis"}, {"y"}}},
          .initializers = {list("clips", {-1, 11, 8}), list("axis", {1})},
          .shape = {-1, 8}};
}

void clips_of_frames(void **) {
  const graph::Graph g = parse(clips().bytes());
  const Tensor x(QTN_FLOAT32, {22, 8});
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = static_cast<float>(i / 8);
  const Tensor y = graph::evaluate(g, std::vector<Tensor>{x})[0];
  assert_true(y.shape() == Shape({2, 1, 8}));
  for (std::int64_t i = 0; i < y.count(); ++i)  // the means of 0..10 and of 11..21
    assert_true(std::fabs(y.as<float>()[i] - (i < 8 ? 5.0f : 16.0f)) < 1e-5f);
  expect_error(QTN_ESHAPE, {"Reshape", "21x8"}, [&] {
    graph::evaluate(g, std::vector<Tensor>{Tensor(QTN_FLOAT32, {21, 8})});
  });
}

void parts_of_batches(void **) {
  parse(ModelText{.opset = 18,
                  .nodes = {{"Split", {"x", "parts"}, {"y", "z"}}},
                  .initializers = {list("parts", {3, 8})},
                  .outputs = {"y", "z"},
                  .shape = {-1, 8}}
            .bytes());
}

/// Two constants that do not fit each other, beside what only some batch fits.
void what_no_batch_changes(void **) {
  ModelText model = clips();
  model.nodes.push_back({"MatMul", {"a", "b"}, {"p"}});
  model.nodes.push_back({"Add", {"c", "p"}, {"q"}});
  model.outputs.push_back("q");
  model.initializers.push_back(float_tensor("a", {2, 3}, std::vector<float>(6)));
  model.initializers.push_back(float_tensor("b", {2, 3}, std::vector<float>(6)));
  expect_error(QTN_ESHAPE, {"MatMul"}, [&] { parse(model.bytes()); });

  ModelText closed = clips();
  closed.shape = {1, 8};
  expect_error(QTN_ESHAPE, {"Reshape", "1x8", "11x8"}, [&] { parse(closed.bytes()); });
}

/// No batch makes floats of integers.
void types_that_do_not_fit(void **) {
  ModelText model{.nodes = {{"Add", {"x", "k"}, {"y"}}}, .initializers = {list("k", {1})}, .shape = {-1, 8}};
  expect_error(QTN_EDTYPE, {"Add"}, [&] { parse(model.bytes()); });
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {cmocka_unit_test(clips_of_frames), cmocka_unit_test(parts_of_batches),
                              cmocka_unit_test(what_no_batch_changes), cmocka_unit_test(types_that_do_not_fit)};
  return cmocka_run_group_tests_name("onnx/open_batches", tests, nullptr, nullptr);
}
