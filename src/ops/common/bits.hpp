// SPDX-License-Identifier: Apache-2.0
// What operators on the bits of integers share.
#pragma once

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

inline void require_integer(const char *op, const char *name, const Tensor &t) {
  require_dtype(op, name, t,
                {QTN_UINT8, QTN_UINT16, QTN_UINT32, QTN_UINT64, QTN_INT8, QTN_INT16, QTN_INT32, QTN_INT64});
}

/// Two of one type of integer, shapes broadcast.
inline Types infer_bits(const char *op, const Call &call) {
  require_integer(op, "a", *call.in(0));
  return infer_binary(op, call);
}

/// y = f(a, b) on the bits.
template <class F>
void run_bits(const Call &call, std::span<Tensor> outputs, F &&f) {
  const Tensor &y = outputs[0];
  dispatch_width(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(*call.in(0), *call.in(1), y.shape(), y.as<T>(),
                        [&](T a, T b) { return static_cast<T>(f(a, b)); });
  });
}

}  // namespace qtn::ops
