// SPDX-License-Identifier: Apache-2.0
// What operators on any count of operands share: Max, Min, Sum, Mean.
#pragma once

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Operands of one type, broadcast to one shape.
inline Types infer_variadic(const char *op, const Call &call) {
  const Tensor &first = *call.in(0);
  require_number(op, "input 0", first);
  Shape shape = first.shape();
  for (const Tensor *x : call.inputs.subspan(1)) {
    require_same_dtype(op, first, *x);
    shape = broadcast(shape, x->shape(), op);
  }
  return {{first.dtype(), shape}};
}

/// to[i] = f(to[i], from[i]), of bytes sixteen at once.
template <class T, class F>
void fold_row(T *to, const T *from, std::int64_t n, F &&f) {
  std::int64_t i = 0;
  if constexpr (sizeof(T) == 1) {
    typedef T Sixteen __attribute__((vector_size(16)));  // which `using` does not take of a T
    for (Sixteen a, b; i + 16 <= n; i += 16) {
      __builtin_memcpy(&a, to + i, sizeof a);
      __builtin_memcpy(&b, from + i, sizeof b);
      a = f(a, b);
      __builtin_memcpy(to + i, &a, sizeof a);
    }
  }
  for (; i < n; ++i) to[i] = f(to[i], from[i]);
}

/// y = f(f(first, second), third) ... Tensors of any strides.
template <class T, class F>
void fold_operands(const Call &call, const Tensor &y, F &&f) {
  const Shape &shape = y.shape();
  copy_elements(y, call.in(0)->view(shape, steps_over(*call.in(0), shape)));
  for (const Tensor *x : call.inputs.subspan(1))
    for_rows<2>(shape, {y.strides(), steps_over(*x, shape)}, [&](const auto &at, const auto &steps, std::int64_t n) {
      T *to = y.as<T>() + at[0];
      const T *from = x->as<const T>() + at[1];
      if (steps[0] == 1 && steps[1] == 1) return fold_row(to, from, n, f);
      for (std::int64_t i = 0; i < n; ++i) to[i * steps[0]] = f(to[i * steps[0]], from[i * steps[1]]);
    });
}

/// The sum of float32 or float64.
inline void add_operands(const Call &call, const Tensor &y) {
  const auto add = [](auto a, auto b) { return a + b; };
  y.dtype() == QTN_FLOAT64 ? fold_operands<double>(call, y, add) : fold_operands<float>(call, y, add);
}

}  // namespace qtn::ops
