// SPDX-License-Identifier: Apache-2.0
// Compiled as vectors: masks are made of comparisons.
#include "ops/common/comparison.hpp"

#include <functional>

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

using Steps = std::array<std::int64_t, 3>;  ///< from element to element of y, a and b
using Row = void (*)(bool *y, const std::byte *a, const std::byte *b, const Steps &steps, std::int64_t count);

constexpr std::int64_t kVectors = 32;  ///< shorter rows are quicker without

template <class T, class F>
void compare_row(bool *y, const std::byte *a_bytes, const std::byte *b_bytes, const Steps &steps, std::int64_t count) {
  const T *a = reinterpret_cast<const T *>(a_bytes), *b = reinterpret_cast<const T *>(b_bytes);
  auto *to = reinterpret_cast<std::uint8_t *>(y);
  const auto loop = [=](auto s, auto of_a, auto of_b) {
    for (std::int64_t i = 0; i < count; ++i) to[i * s] = F()(a[i * of_a], b[i * of_b]);
  };
  constexpr std::integral_constant<std::int64_t, 1> one;
  constexpr std::integral_constant<std::int64_t, 0> same;
  if constexpr (sizeof(T) >= 4) {
    if (count < kVectors) return loop(steps[0], steps[1], steps[2]);
    if (steps == Steps{1, 1, 1}) return loop(one, one, one);
    if (steps == Steps{1, 1, 0}) return loop(one, one, same);
    if (steps == Steps{1, 0, 1}) return loop(one, same, one);
  }
  loop(steps[0], steps[1], steps[2]);
}

/// Integers are equal where their bits are.
template <class T>
using Equated = std::conditional_t<std::is_floating_point_v<T>, T, BitsOf<T>>;

Row row_of(Comparison comparison, qdtype dtype) {
  Row row = nullptr;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    row = comparison == Comparison::equal  ? compare_row<Equated<T>, std::equal_to<>>
          : comparison == Comparison::less ? compare_row<T, std::less<>>
                                           : compare_row<T, std::less_equal<>>;
  });
  return row;
}

}  // namespace

Types infer_comparison(const char *op, const Call &call) {
  Types types = infer_binary(op, call);
  types[0].dtype = QTN_BOOL;
  return types;
}

void compare(Comparison comparison, const Tensor &a, const Tensor &b, const Tensor &y) {
  const Shape &shape = y.shape();
  const auto size = static_cast<std::int64_t>(dtype_size(a.dtype()));
  for_rows<3>(shape, {y.strides(), steps_over(a, shape), steps_over(b, shape)},
              [&, row = row_of(comparison, a.dtype())](const auto &at, const Steps &steps, std::int64_t count) {
                row(y.as<bool>() + at[0], a.as<const std::byte>() + at[1] * size,
                    b.as<const std::byte>() + at[2] * size, steps, count);
              });
}

}  // namespace qtn::ops
