// SPDX-License-Identifier: Apache-2.0
// Loops of operators that work element by element.
#pragma once

#include <algorithm>
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

/// y = f(x) over contiguous tensors of one shape.
template <class X, class Y = X, class F>
void map_elements(const Tensor &x, const Tensor &y, F &&f) {
  const X *from = x.as<X>();
  Y *to = y.as<Y>();
  for_blocks(x.count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
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

/// Indices of two operands broadcast to one shape, with neighbouring axes joined where both allow it.
struct BroadcastPlan {
  BroadcastPlan(const Shape &a, const Shape &b, const Shape &out);
  Shape dims, a_strides, b_strides;  ///< at least one axis
};

/// out = f(a, b) under broadcasting; all contiguous.
template <class A, class B, class Out, class F>
void map_broadcast(const Tensor &a, const Tensor &b, const Shape &shape, Out *out, F &&f) {
  const BroadcastPlan plan(a.shape(), b.shape(), shape);
  const std::size_t last = plan.dims.size() - 1;
  const std::int64_t length = plan.dims[last];
  if (length == 0) return;
  const std::int64_t sa = plan.a_strides[last], sb = plan.b_strides[last];
  const std::int64_t rows = element_count(plan.dims, 0, last), step = std::max<std::int64_t>(1, (1 << 15) / length);
  parallel_for(static_cast<std::size_t>((rows + step - 1) / step), [&](std::size_t block) {
    const std::int64_t first = static_cast<std::int64_t>(block) * step;
    for (std::int64_t row = first; row < std::min(rows, first + step); ++row) {
      const A *pa = a.as<A>();
      const B *pb = b.as<B>();
      std::int64_t rest = row;
      for (std::size_t axis = last; axis-- > 0;) {
        const std::int64_t i = rest % plan.dims[axis];
        rest /= plan.dims[axis];
        pa += i * plan.a_strides[axis];
        pb += i * plan.b_strides[axis];
      }
      Out *to = out + row * length;
      for (std::int64_t i = 0; i < length; ++i) to[i] = f(pa[i * sa], pb[i * sb]);
    }
  });
}

/// Type inference of the arithmetic operators: one type of number, shapes broadcast.
std::vector<TensorType> infer_binary(const char *op, const Call &call);

/// y = f(a, b) on any type of number. Integers wrap around: f sees them unsigned.
template <class F>
void run_binary(const Call &call, std::span<Tensor> outputs, F &&f) {
  const Tensor &a = *call.in(0), &b = *call.in(1), &y = outputs[0];
  dispatch_number(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(a, b, y.shape(), y.as<T>(), [&](T u, T v) {
      if constexpr (std::is_integral_v<T>) {
        using Wide = std::uint64_t;
        return static_cast<T>(f(static_cast<Wide>(u), static_cast<Wide>(v)));
      } else {
        return f(u, v);
      }
    });
  });
}

}  // namespace qtn::ops
