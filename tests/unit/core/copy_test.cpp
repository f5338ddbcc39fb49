// SPDX-License-Identifier: Apache-2.0
// Copies between strides of every kind, against one element at a time.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "base/parallel.hpp"
#include "core/tensor.hpp"
#include "golden.hpp"

namespace qtn::test {
namespace {

/// Strides of a tensor whose axes lie in memory in this order, the last one innermost, with `gap` more elements between
/// neighbours of each axis but the innermost.
Shape strides_in(const Shape &shape, const std::vector<std::size_t> &order, std::int64_t gap) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step = step * shape[order[i]] + gap;
  }
  return strides;
}

std::size_t elements_of(const Shape &shape, const Shape &strides) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  return static_cast<std::size_t>(last) + 1;
}

template <class T>
void check(qdtype dtype, const Shape &shape, const Shape &to_strides, const Shape &from_strides) {
  std::vector<T> from(elements_of(shape, from_strides)), to(elements_of(shape, to_strides), T(7)), want = to;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 2654435761u >> 8);
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t left = element_count(shape); left > 0; --left) {
    std::int64_t at = 0, place = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      at += index[axis] * from_strides[axis];
      place += index[axis] * to_strides[axis];
    }
    want[static_cast<std::size_t>(place)] = from[static_cast<std::size_t>(at)];
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  copy_elements(Tensor(dtype, shape, to_strides, to.data(), nullptr),
                Tensor(dtype, shape, from_strides, from.data(), nullptr));
  assert_true(to == want);
}

/// Axes in any order on both sides; `most`: the longest of one or two of them, of three, and of four.
void check_orders(int rounds, std::array<std::int64_t, 3> most) {
  std::mt19937 random(1);
  const auto up_to = [&](std::int64_t limit) { return std::uniform_int_distribution<std::int64_t>(1, limit)(random); };
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::size_t> order(static_cast<std::size_t>(up_to(4)));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::size_t> other = order;
    Shape shape;
    for (std::size_t i = 0; i < order.size(); ++i)
      shape.push_back(up_to(most[std::max<std::size_t>(order.size(), 2) - 2]));
    if (round % 2 == 0) shape[order.size() - 1] = up_to(4);  // as channels of a picture
    std::shuffle(order.begin(), order.end(), random);
    std::shuffle(other.begin(), other.end(), random);
    const Shape to = strides_in(shape, order, round % 3), from = strides_in(shape, other, round % 2);
    check<std::uint8_t>(QTN_UINT8, shape, to, from);
    check<std::uint16_t>(QTN_UINT16, shape, to, from);
    check<std::uint32_t>(QTN_UINT32, shape, to, from);
    check<std::uint64_t>(QTN_UINT64, shape, to, from);
  }
}

void test_orders(void **) { check_orders(400, {150, 14, 14}); }

/// Several threads share the work.
void test_large(void **) {
  const ThreadScope threads(3);
  check_orders(60, {900, 90, 30});
}

/// Elements that share bytes, from any of a byte on; others in these bytes stay as they are.
void test_packed(void **) {
  std::mt19937 random(2);
  const auto up_to = [&](std::int64_t limit) { return std::uniform_int_distribution<std::int64_t>(0, limit)(random); };
  const auto storage = [&](qdtype dtype, std::size_t elements) {
    const Tensor t(dtype, {(static_cast<std::int64_t>(elements) + 6) / 4 * 4});  // whole bytes
    for (std::size_t i = 0; i < t.nbytes(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
    return t;
  };
  for (int round = 0; round < 400; ++round) {
    const qdtype dtype = std::array{QTN_UINT4, QTN_INT4, QTN_UINT2, QTN_INT2, QTN_FLOAT4E2M1}[round % 5];
    std::vector<std::size_t> order(static_cast<std::size_t>(1 + up_to(2)));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::size_t> other = order;
    Shape shape;
    for (std::size_t i = 0; i < order.size(); ++i) shape.push_back(1 + up_to(order.size() < 3 ? 300 : 20));
    std::shuffle(order.begin(), order.end(), random);
    std::shuffle(other.begin(), other.end(), random);
    const Shape to_strides = strides_in(shape, order, round % 3), from_strides = strides_in(shape, other, round % 2);
    const Tensor target = storage(dtype, elements_of(shape, to_strides)), want = target.clone();
    const Tensor source = storage(dtype, elements_of(shape, from_strides));
    const std::int64_t first = up_to(3), from = up_to(3);
    copy_elements(target.view(shape, to_strides, first), source.view(shape, from_strides, from));
    std::vector<std::int64_t> index(shape.size(), 0);
    for (std::int64_t left = element_count(shape); left > 0; --left) {
      std::int64_t to = first, at = from;
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        to += index[axis] * to_strides[axis], at += index[axis] * from_strides[axis];
      want.packed().store(to, source.packed().load(at));
      for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
    }
    assert_memory_equal(target.data(), want.data(), want.nbytes());
  }
}

/// What lies without gaps stays where it is; else it is copied. No element is lost.
void test_any_order(void **) {
  const Shape shape{2, 3, 4, 5};
  for (const std::vector<std::size_t> &order : {std::vector<std::size_t>{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 0, 2, 1}})
    for (const std::int64_t gap : {0, 1}) {
      const Shape strides = strides_in(shape, order, gap);
      std::vector<float> values(elements_of(shape, strides));
      std::iota(values.begin(), values.end(), 0.0f);
      const Tensor x(QTN_FLOAT32, shape, strides, values.data(), nullptr);
      const Tensor any = x.in_any_order(), plain = x.to_contiguous();
      assert_true(any.contiguous() && any.count() == x.count());
      assert_true((any.data() == values.data()) == (gap == 0));
      std::vector<float> got(any.as<float>(), any.as<float>() + any.count());
      std::vector<float> want(plain.as<float>(), plain.as<float>() + plain.count());
      std::ranges::sort(got);
      std::ranges::sort(want);
      assert_true(got == want);
    }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_large),
                              cmocka_unit_test(test_packed), cmocka_unit_test(test_any_order)};
  return cmocka_run_group_tests_name("core.copy", tests, nullptr, nullptr);
}
