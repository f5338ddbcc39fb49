// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"

#include "ops/infer.hpp"

namespace qtn::ops {

BroadcastPlan::BroadcastPlan(const Shape &a, const Shape &b, const Shape &out) {
  const Shape sa = broadcast_strides(a, contiguous_strides(a), out),
              sb = broadcast_strides(b, contiguous_strides(b), out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 1) continue;
    const std::size_t top = dims.size();
    const bool joins = top > 0 && a_strides[top - 1] == sa[i] * out[i] && b_strides[top - 1] == sb[i] * out[i];
    if (joins) {
      dims[top - 1] *= out[i];
      a_strides[top - 1] = sa[i];
      b_strides[top - 1] = sb[i];
    } else {
      dims.push_back(out[i]);
      a_strides.push_back(sa[i]);
      b_strides.push_back(sb[i]);
    }
  }
  if (!dims.empty()) return;
  dims.push_back(1);
  a_strides.push_back(0);
  b_strides.push_back(0);
}

Types infer_binary(const char *op, const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_number(op, "a", a);
  require_same_dtype(op, a, b);
  return {{a.dtype(), broadcast(a.shape(), b.shape(), op)}};
}

}  // namespace qtn::ops
