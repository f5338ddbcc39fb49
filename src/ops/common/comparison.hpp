// SPDX-License-Identifier: Apache-2.0
// What operators from two numbers to a truth value share.
#pragma once

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Two of one type of number, shapes broadcast.
inline Types infer_comparison(const char *op, const Call &call) {
  Types types = infer_binary(op, call);
  types[0].dtype = QTN_BOOL;
  return types;
}

/// y = f(a, b) on any type, bool included.
template <class F>
void compare(const Call &call, std::span<Tensor> outputs, F &&f) {
  const Tensor &a = *call.in(0), &b = *call.in(1), &y = outputs[0];
  dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(a, b, y.shape(), y.as<bool>(), f);
  });
}

}  // namespace qtn::ops
