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

Walk Walk::in_order_of_memory(const Shape &given, std::span<const Shape> operands) {
  Shape shape = given;
  std::array<Shape, kMaxOperands> steps;
  std::copy(operands.begin(), operands.end(), steps.begin());
  const std::span<Shape> used(steps.data(), operands.size());
  const auto swap = [](Shape &s, std::size_t axis) { std::swap(s[axis - 1], s[axis]); };
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    for (std::size_t at = axis; at > 0 && steps[0][at - 1] < steps[0][at]; --at) {
      swap(shape, at);
      for (Shape &s : used) swap(s, at);
    }
  Walk walk(shape, used);
  walk.lengthen_rows();
  return walk;
}

void Walk::lengthen_rows() {
  constexpr std::int64_t kShort = 16;
  const std::size_t last = dims.size() - 1;
  if (last == 0 || dims[last] >= kShort || dims[last - 1] <= dims[last]) return;
  std::swap(dims[last], dims[last - 1]);
  for (Shape &s : strides)
    if (!s.empty()) std::swap(s[last], s[last - 1]);
}

WalkedRow::WalkedRow(const Walk &walk, std::size_t operands, std::int64_t number) : walk_(walk), operands_(operands) {
  for (std::size_t axis = walk.dims.size() - 1; axis-- > 0; number /= walk.dims[axis]) {
    index_[axis] = number % walk.dims[axis];
    for (std::size_t o = 0; o < operands; ++o) offsets[o] += index_[axis] * walk.strides[o][axis];
  }
}

void WalkedRow::advance() {
  for (std::size_t axis = walk_.dims.size() - 1; axis-- > 0;) {
    const bool carries = ++index_[axis] == walk_.dims[axis];
    const std::int64_t steps = carries ? 1 - walk_.dims[axis] : 1;
    for (std::size_t o = 0; o < operands_; ++o) offsets[o] += steps * walk_.strides[o][axis];
    if (!carries) return;
    index_[axis] = 0;
  }
}

Types infer_binary(const char *op, const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_number(op, "a", a);
  require_same_dtype(op, a, b);
  return {{a.dtype(), broadcast(a.shape(), b.shape(), op)}};
}

}  // namespace qtn::ops
