// SPDX-License-Identifier: Apache-2.0
// Nodes as opsets 7 to 20 wrote them.
#include "ops/common/old_nearest.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

struct Upgraded {
  std::string op;
  Attrs attrs;
  std::map<std::size_t, Tensor> constants;
  std::vector<std::ptrdiff_t> inputs;

  Ints list(std::size_t i) const { return int_values(constants.at(i), "constant"); }
};

Upgraded upgrade(const char *op, int opset, Attrs a, std::size_t inputs = 1) {
  Upgraded u{op, std::move(a), {}, {}};
  ops::OldNode node{u.op, u.attrs, opset, inputs, {}, {}};
  ops::upgrade_node(node);
  u.constants = node.constants;
  u.inputs = node.inputs;
  // What is left must be in the schema of today.
  if (const ops::OpDef *def = ops::find_op(u.op)) u.attrs.check(def->attrs, def->name);
  return u;
}

void attributes_become_inputs(void **) {
  for (const char *op : {"Squeeze", "Unsqueeze", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"}) {
    const Upgraded u = upgrade(op, 11, attrs({{"axes", Ints{2, 3}}}));
    assert_true(u.list(1) == (Ints{2, 3}));
    assert_false(u.attrs.has("axes"));
  }
  assert_true(
      upgrade("ReduceMean", 17, attrs({{"axes", Ints{-1}}, {"keepdims", std::int64_t{0}}})).attrs.has("keepdims"));
  assert_true(upgrade("Split", 11, attrs({{"split", Ints{1, 2}}})).list(1) == (Ints{1, 2}));
  const Upgraded slice = upgrade("Slice", 9, attrs({{"starts", Ints{0}}, {"ends", Ints{5}}, {"axes", Ints{1}}}));
  assert_true(slice.list(1) == Ints{0} && slice.list(2) == Ints{5} && slice.list(3) == Ints{1});
  assert_true(upgrade("Slice", 9, attrs({{"starts", Ints{0}}, {"ends", Ints{5}}})).constants.count(3) == 0);
  const Upgraded pad =
      upgrade("Pad", 10, attrs({{"pads", Ints{0, 1}}, {"value", 2.5}, {"mode", std::string("constant")}}));
  assert_true(pad.list(1) == (Ints{0, 1}) && item(pad.constants.at(2)) == 2.5 && pad.attrs.has("mode"));
  const Upgraded clip = upgrade("Clip", 6, attrs({{"max", 6.0}}));
  assert_true(clip.constants.count(1) == 0 && item(clip.constants.at(2)) == 6);
}

void attributes_without_meaning_go(void **) {
  assert_true(upgrade("Dropout", 7, attrs({{"ratio", 0.3}})).attrs.size() == 0);
  const Attrs batch_norm =
      attrs({{"spatial", std::int64_t{1}}, {"consumed_inputs", Ints{0, 0, 0, 1, 1}}, {"epsilon", 1e-3}});
  assert_true(upgrade("BatchNormalization", 7, batch_norm).attrs.size() == 1);
  expect_error(QTN_EUNSUPPORTED, "spatial", [] {
    upgrade("BatchNormalization", 7, attrs({{"spatial", std::int64_t{0}}}));
  });
}

void upsample_is_resize(void **) {
  const Upgraded seven =
      upgrade("Upsample", 7, attrs({{"scales", std::vector<double>{1, 1, 2, 2}}, {"mode", std::string("bilinear")}}));
  assert_string_equal(seven.op.c_str(), "Resize");
  assert_true(seven.inputs.empty() &&
              float_values(seven.constants.at(2), "scales") == (std::vector<float>{1, 1, 2, 2}));
  assert_string_equal(seven.attrs.get_string("mode", "").c_str(), "linear");
  const Upgraded nine = upgrade("Upsample", 9, attrs(), 2);
  assert_true(nine.inputs == (std::vector<std::ptrdiff_t>{0, -1, 1}));

  const Upgraded ten = upgrade("Resize", 10, attrs({{"mode", std::string("nearest")}}), 2);
  assert_true(ten.inputs == (std::vector<std::ptrdiff_t>{0, -1, 1}) && ops::rounds_by_scale(ten.attrs));
  const Upgraded linear = upgrade("Resize", 10, attrs({{"mode", std::string("linear")}}), 2);
  const Tensor x = floats({1, 1, 1, 2}, {1, 2}), scales = floats({4}, {1, 1, 1, 2});
  expect_equal(run("Resize", linear.attrs, {&x, nullptr, &scales})[0], floats({1, 1, 1, 4}, {1, 1.5, 2, 2}), 0,
               "Resize-10");
}

void old_resizes_need_scales(void **) {
  expect_error(QTN_EINVAL, "Resize: 1 inputs given", [] { upgrade("Resize", 10, attrs(), 1); });
  expect_error(QTN_EINVAL, "Upsample: 1 inputs given and no scales", [] { upgrade("Upsample", 9, attrs(), 1); });
}

void old_softmax_joins_axes(void **) {
  const Tensor x = floats({1, 2, 2}, {0, 0, 0, 0});
  expect_equal(run("Softmax", upgrade("Softmax", 11, attrs()).attrs, {&x})[0],
               floats({1, 2, 2}, {.25f, .25f, .25f, .25f}), 0, "Softmax-11");
  expect_equal(run("Softmax", attrs({{"axis", std::int64_t{1}}}), {&x})[0], floats({1, 2, 2}, {.5f, .5f, .5f, .5f}), 0,
               "Softmax-13");
  const float half = std::log(0.5f), quarter = std::log(0.25f);
  expect_equal(run("LogSoftmax", upgrade("LogSoftmax", 11, attrs()).attrs, {&x})[0],
               floats({1, 2, 2}, {quarter, quarter, quarter, quarter}), 1e-7, "LogSoftmax-11");
  expect_equal(run("LogSoftmax", attrs(), {&x})[0], floats({1, 2, 2}, {half, half, half, half}), 1e-7, "LogSoftmax-13");
  assert_true(upgrade("Softmax", 13, attrs()).attrs.size() == 0);
  assert_false(upgrade("Softmax", 11, attrs({{"axis", std::int64_t{-1}}})).attrs.has("_flatten"));
}

void new_forms_stay(void **) {
  for (const ops::OpDef *op : ops::all_ops()) {
    const Upgraded u = upgrade(op->name, 21, attrs());
    assert_true(u.constants.empty() && u.inputs.empty() && u.attrs.size() == 0 && u.op == op->name);
  }
  assert_string_equal(upgrade("NoSuchOperator", 9, attrs()).op.c_str(), "NoSuchOperator");
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(attributes_become_inputs), cmocka_unit_test(attributes_without_meaning_go),
      cmocka_unit_test(upsample_is_resize),       cmocka_unit_test(old_resizes_need_scales),
      cmocka_unit_test(old_softmax_joins_axes),   cmocka_unit_test(new_forms_stay),
  };
  return cmocka_run_group_tests_name("ops/upgrade", tests, nullptr, nullptr);
}
