// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"

#include "ops/common/infer.hpp"

namespace qtn::ops {

Walk::Walk(const Shape &shape, std::span<const Shape> operands) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    const std::size_t top = dims.size();
    bool joins = top > 0;
    for (std::size_t o = 0; joins && o < operands.size(); ++o) joins = strides[o][top - 1] == operands[o][i] * shape[i];
    joins ? void(dims[top - 1] *= shape[i]) : dims.push_back(shape[i]);
    for (std::size_t o = 0; o < operands.size(); ++o)
      joins ? void(strides[o][top - 1] = operands[o][i]) : strides[o].push_back(operands[o][i]);
  }
  if (!dims.empty()) return;
  dims.push_back(1);
  for (std::size_t o = 0; o < operands.size(); ++o) strides[o].push_back(0);
}

Types infer_binary(const char *op, const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_number(op, "a", a);
  require_same_dtype(op, a, b);
  return {{a.dtype(), broadcast(a.shape(), b.shape(), op)}};
}

}  // namespace qtn::ops
