// SPDX-License-Identifier: Apache-2.0
// Shapes and strides against NumPy, and at the limits of rank and size.
#include "core/shape.hpp"

#include "golden.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

nlohmann::json part(const char *name) { return golden("quant/shapes.json").at(name); }

Shape shape_of(const nlohmann::json &j) { return Shape(j.get<Ints>()); }

void expect_shape(const Shape &got, const Shape &want, const std::string &what) {
  if (!(got == want)) fail_test(what, ": ", to_string(got), ", not ", to_string(want));
}

void broadcasting(void **) {
  std::size_t refused = 0;
  for (const auto &c : part("broadcast")) {
    const Shape a = shape_of(c.at("a")), b = shape_of(c.at("b"));
    if (c.at("out").is_null()) {
      ++refused;
      expect_error(QTN_ESHAPE, {"here", to_string(a), to_string(b)}, [&] { broadcast(a, b, "here"); });
      continue;
    }
    const Shape out = shape_of(c.at("out")), strides = broadcast_strides(a, contiguous_strides(a), out);
    expect_shape(broadcast(a, b, "here"), out, c.dump());
    if (!same_layout(out, strides, shape_of(c.at("strides")))) fail_test(c.dump(), ": ", to_string(strides));
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i] > 1 && (i + a.size() < out.size() || a[i + a.size() - out.size()] == 1))
        assert_int_equal(strides[i], 0);
  }
  assert_true(refused > 5);
}

void reshaping(void **) {
  std::size_t copies = 0;
  for (const auto &c : part("reshape")) {
    const Shape target = shape_of(c.at("target"));
    const auto got = reshape_strides(shape_of(c.at("shape")), shape_of(c.at("strides")), target);
    if (got.has_value() == c.at("out").is_null()) fail_test(c.dump(), got ? ": a view" : ": no view");
    copies += !got;
    if (got && !same_layout(target, *got, shape_of(c.at("out")))) fail_test(c.dump(), ": ", to_string(*got));
  }
  assert_true(copies > 20);
}

void row_major(void **) {
  for (const auto &c : part("contiguous")) {
    const Shape shape = shape_of(c.at("shape"));
    expect_shape(contiguous_strides(shape), shape_of(c.at("strides")), c.dump());
  }
  expect_shape(contiguous_strides({2, 0, 3}), {3, 3, 1}, "an axis without elements steps as one of length 1");
  expect_shape(channels_last_strides({2, 3, 4, 5}), {60, 1, 15, 3}, "channels last");
  expect_shape(channels_last_strides({2, 3, 4}), {12, 1, 3}, "channels last");
  expect_shape(channels_last_strides({2, 3}), {3, 1}, "channels last");
  expect_shape(channels_last_strides({2, 0, 4, 5}), {20, 1, 5, 1}, "no channels");
}

void slices(void **) {
  for (const auto &c : part("slice")) {
    const auto size = c.at("size").get<std::int64_t>();
    std::vector<float> values(static_cast<std::size_t>(3 * size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 3);
    const Tensor x = floats(Shape{size, 3}, values);
    const auto range = c.at("range").get<Ints>();
    for (const bool second : {false, true}) {
      const Tensor t = second ? x.permute(std::vector<std::int32_t>{1, 0}) : x;
      const Tensor part = t.slice(second ? 1 : 0, range[0], range[1], range[2]).to_contiguous();
      const auto want = c.at("out").get<Ints>();
      expect_shape(part.shape(), second ? Shape{3, std::ssize(want)} : Shape{std::ssize(want), 3}, c.dump());
      for (std::size_t i = 0; i < want.size(); ++i)
        if (part.as<const float>()[second ? i : 3 * i] != static_cast<float>(want[i])) fail_test(c.dump(), " at ", i);
    }
  }
  const Tensor x = floats({5}, {0, 1, 2, 3, 4});
  assert_int_equal(x.slice(0, INT64_MIN, INT64_MAX, INT64_MAX).count(), 1);
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN})
    expect_error(QTN_EINVAL, "must be positive", [&] { x.slice(0, 0, 5, step); });
  expect_error(QTN_EINVAL, "axis 1", [&] { x.slice(1, 0, 5, 1); });
}

void selects(void **) {
  const Tensor x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  for (std::int64_t i = -3; i < 3; ++i) {
    const Tensor column = x.select(1, i).to_contiguous();
    expect_shape(column.shape(), {2}, "select");
    for (int row = 0; row < 2; ++row)
      assert_float_equal(column.as<const float>()[row], static_cast<float>(3 * row + (i + 3) % 3), 0);
  }
  assert_float_equal(x.select(0, -1).select(0, -1).as<const float>()[0], 5, 0);
  for (const std::int64_t i : {std::int64_t{-4}, std::int64_t{3}, INT64_MIN, INT64_MAX})
    expect_error(QTN_EINVAL, "select", [&] { x.select(1, i); });
}

void orders(void **) {
  const Tensor x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::int32_t swapped[] = {-1, 0}, twice[] = {1, -1}, far[] = {0, 2}, one[] = {0};
  expect_shape(x.permute(swapped).strides(), {1, 3}, "permute");
  expect_error(QTN_EINVAL, "axis 1 is named twice", [&] { x.permute(twice); });
  expect_error(QTN_EINVAL, "axis 2", [&] { x.permute(far); });
  expect_error(QTN_EINVAL, "1 axes for a tensor of rank 2", [&] { x.permute(one); });
  expect_error(QTN_ESHAPE, {"2x3 has 6", "5 has 5"}, [&] { x.reshape({5}); });
  expect_error(QTN_ESHAPE, "does not broadcast", [&] { x.expand({2, 2, 2}); });
  expect_error(QTN_ESHAPE, "does not broadcast", [&] { x.expand({3}); });
  expect_shape(x.expand({4, 2, 3}).strides(), {0, 3, 1}, "expand");
}

void ranks(void **) {
  Shape shape{2, 3, 4, 5, 6, 7};
  shape.push_back(8);
  shape.insert(0, 1);  // the eighth
  expect_shape(shape, {1, 2, 3, 4, 5, 6, 7, 8}, "insert");
  expect_error(QTN_ESHAPE, {"rank 9", "8"}, [&] { shape.push_back(9); });
  expect_error(QTN_ESHAPE, "rank 9", [&] { shape.insert(3, 9); });
  expect_error(QTN_ESHAPE, "rank 9", [] { Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}); });
  expect_shape(shape, {1, 2, 3, 4, 5, 6, 7, 8}, "unchanged");
  shape.erase(7);
  shape.erase(0);
  shape.erase(2);
  expect_shape(shape, {2, 3, 5, 6, 7}, "erase");
  shape.insert(2, 4);
  expect_shape(shape, {2, 3, 4, 5, 6, 7}, "insert");
  assert_int_equal(normalize_axis(-6, 6, "x"), 0);
  assert_int_equal(normalize_axis(5, 6, "x"), 5);
  assert_int_equal(normalize_axis(0, 6, "x"), 0);
  for (const std::int64_t axis : {std::int64_t{-7}, std::int64_t{6}, INT64_MIN, INT64_MAX})
    expect_error(QTN_EINVAL, {"x: axis", "rank 6"}, [&] { normalize_axis(axis, 6, "x"); });
  expect_error(QTN_EINVAL, "rank 0", [] { normalize_axis(0, 0, "x"); });
}

void counts(void **) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  assert_int_equal(element_count({2, 3, 4}, 1, 2), 3);
  assert_int_equal(element_count({2, 3, 4}, 1, 1), 1);
  assert_int_equal(element_count({2, 0, 4}), 0);
  assert_int_equal(element_count({}), 1);
  assert_int_equal(element_count({INT64_MAX}), INT64_MAX);
  assert_int_equal(element_count({kHalf, 1}), kHalf);
  expect_error(QTN_ESHAPE, "too large", [] { element_count({kHalf, 2}); });
  expect_error(QTN_ESHAPE, "negative", [] { element_count({2, -1}); });
  assert_int_equal(contiguous_strides({3, kHalf, 2})[0], 0);  // no number holds it
  assert_true(has_strides({0, kHalf / 8, 1}) && !has_strides({0, kHalf}));
  expect_error(QTN_ESHAPE, "0x4611686018427387904 is too large", [] { Tensor(QTN_INT8, {0, kHalf}); });
  assert_string_equal(to_string(Shape{-1, 3}).c_str(), "?x3");
  assert_string_equal(to_string(Shape{}).c_str(), "scalar");
  assert_string_equal(to_string(Shape{-2}).c_str(), "-2");
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::broadcasting), cmocka_unit_test(qtn::reshaping),
                              cmocka_unit_test(qtn::row_major),    cmocka_unit_test(qtn::slices),
                              cmocka_unit_test(qtn::selects),      cmocka_unit_test(qtn::orders),
                              cmocka_unit_test(qtn::ranks),        cmocka_unit_test(qtn::counts)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
