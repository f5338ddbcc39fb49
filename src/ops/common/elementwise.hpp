// SPDX-License-Identifier: Apache-2.0
// Loops of operators that work element by element.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/parallel.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

/// Calls f(begin, end) for fixed blocks of [0, count), in parallel.
template <class F>
void for_blocks(std::int64_t count, F &&f) {
  constexpr std::int64_t kBlock = 1 << 15;
  parallel_for(static_cast<std::size_t>((count + kBlock - 1) / kBlock), [&](std::size_t block) {
    const std::int64_t begin = static_cast<std::int64_t>(block) * kBlock;
    f(begin, std::min(count, begin + kBlock));
  });
}

inline constexpr std::int64_t kNeighbours = 64;

/// Calls f(o, first, count) in parallel for o of [0, outer) and elements [first, first + count) of `inner` that lie side
/// by side, up to kNeighbours at once: loops along another axis then read memory in its order. If inner is 1, count is a
/// constant.
template <class F>
void for_neighbours(std::int64_t outer, std::int64_t inner, F &&f) {
  if (inner == 1)
    return parallel_for(static_cast<std::size_t>(outer), [&](std::size_t o) {
      f(static_cast<std::int64_t>(o), std::int64_t{0}, std::integral_constant<std::int64_t, 1>());
    });
  const std::int64_t blocks = (inner + kNeighbours - 1) / kNeighbours;
  parallel_for(static_cast<std::size_t>(outer * blocks), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t first = i % blocks * kNeighbours;
    f(i / blocks, first, std::min(kNeighbours, inner - first));
  });
}

/// y = f(x) over contiguous tensors of one shape.
template <class X, class Y = X, class F>
void map_elements(const Tensor &x, const Tensor &y, F &&f) {
  for_blocks(x.count(), [&](std::int64_t begin, std::int64_t end) {
    // As variables of their own: bytes that are stored could be anything else.
    const X *from = x.as<X>();
    Y *to = y.as<Y>();
    const auto map = f;
    for (std::int64_t i = begin; i < end; ++i) to[i] = map(from[i]);
  });
}

/// dispatch() for element types on which arithmetic is defined.
template <class F>
void dispatch_number(qdtype dtype, F &&f) {
  dispatch(dtype, [&](auto zero) {
    if constexpr (std::is_same_v<decltype(zero), bool>)
      fail_dtype(QTN_BOOL);
    else
      f(zero);
  });
}

/// dispatch_number() for what adds, subtracts and multiplies alone: integers wrap around, and those of one width are the
/// same numbers, which f sees unsigned.
template <class F>
void dispatch_wrapping(qdtype dtype, F &&f) {
  dispatch_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      f(std::make_unsigned_t<T>{});
    else
      f(zero);
  });
}

/// y = f(x) on float32 or float64.
template <class F>
void map_reals(const Call &call, std::span<Tensor> outputs, F &&f) {
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? map_elements<double>(x, outputs[0], f) : map_elements<float>(x, outputs[0], f);
}

/// Strides with which an operand, broadcast to `shape`, is read.
inline Shape steps_over(const Tensor &t, const Shape &shape) {
  return broadcast_strides(t.shape(), t.strides(), shape);
}

/// One or more operands that are walked together, with neighbouring axes joined where all of them allow it.
struct Walk {
  static constexpr std::size_t kMaxOperands = 4;
  Walk(const Shape &shape, std::span<const Shape> operands);
  Shape dims;  ///< at least one axis
  std::array<Shape, kMaxOperands> strides;

  /// Axes as they lie in the first operand, but that a longer one takes the place of a last one that is short.
  static Walk in_order_of_memory(const Shape &shape, std::span<const Shape> operands);

 private:
  void lengthen_rows();
};

/// The rows along the last axis of a walk, one after the other.
class WalkedRow {
 public:
  WalkedRow(const Walk &walk, std::size_t operands, std::int64_t number);
  void advance();
  std::array<std::int64_t, Walk::kMaxOperands> offsets{};  ///< of its first element in each operand

 private:
  const Walk &walk_;
  const std::size_t operands_;
  std::array<std::int64_t, kMaxRank> index_{};
};

/// Calls row(offsets, steps, length) for rows that together are all elements of `shape`, in parallel: element i of a
/// row is at offsets[o] + i * steps[o] of the operand that has strides[o]. The first is what is written.
template <std::size_t N, class Row>
void for_rows(const Shape &shape, const std::array<Shape, N> &strides, Row &&row) {
  const Walk walk = Walk::in_order_of_memory(shape, strides);
  const std::size_t last = walk.dims.size() - 1;
  const std::int64_t length = walk.dims[last];
  if (length == 0) return;
  std::array<std::int64_t, N> steps;
  for (std::size_t o = 0; o < N; ++o) steps[o] = walk.strides[o][last];
  const std::int64_t rows = element_count(walk.dims, 0, last), group = std::max<std::int64_t>(1, (1 << 15) / length);
  parallel_for(static_cast<std::size_t>((rows + group - 1) / group), [&](std::size_t block) {
    const std::int64_t first = static_cast<std::int64_t>(block) * group;
    WalkedRow at(walk, N, first);
    for (std::int64_t left = std::min(group, rows - first); left > 0; --left, at.advance())
      row(at.offsets, steps, length);
  });
}

/// out = f(a, b) under broadcasting; out is contiguous.
template <class A, class B, class Out, class F>
void map_broadcast(const Tensor &a, const Tensor &b, const Shape &shape, Out *out, F &&f) {
  for_rows<3>(shape, {contiguous_strides(shape), steps_over(a, shape), steps_over(b, shape)},
              [&](const auto &at, const auto &steps, std::int64_t length) {
                Out *to = out + at[0];
                const A *pa = a.as<A>() + at[1];
                const B *pb = b.as<B>() + at[2];
                const std::int64_t s = steps[0], sa = steps[1], sb = steps[2];
                if (s == 1 && sa == 1 && sb == 1)
                  for (std::int64_t i = 0; i < length; ++i) to[i] = f(pa[i], pb[i]);
                else
                  for (std::int64_t i = 0; i < length; ++i) to[i * s] = f(pa[i * sa], pb[i * sb]);
              });
}

/// Type inference of the arithmetic operators: one type of number, shapes broadcast.
std::vector<TensorType> infer_binary(const char *op, const Call &call);

/// y = f(a, b) on any type of number, with the meaning of dispatch_wrapping().
template <class F>
void run_binary(const Call &call, std::span<Tensor> outputs, F &&f) {
  const Tensor &a = *call.in(0), &b = *call.in(1), &y = outputs[0];
  dispatch_wrapping(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    // Not as int, in which the square of 65535 overflows.
    using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
    map_broadcast<T, T>(a, b, y.shape(), y.as<T>(),
                        [&](T u, T v) { return static_cast<T>(f(static_cast<Wide>(u), static_cast<Wide>(v))); });
  });
}

}  // namespace qtn::ops
