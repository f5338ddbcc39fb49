// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime's fused residual connections share: inputs x, skip, scale and two shifts, of which one is a bias of
// the sum; outputs y, mean and inverse deviation of each row, and the sum.
#pragma once

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

inline constexpr AttrSpec kSkipAttrs[] = {{"epsilon", AttrSpec::kFloat}};

/// Inputs from 2 on are as long as the last axis of x.
inline Types infer_skip(const char *op, const Call &call) {
  const Tensor &x = *call.in(0), &skip = *call.in(1);
  require_real(op, "x", &x);
  if (x.rank() == 0) fail(QTN_ESHAPE, op, ": x is a scalar");
  const auto same = [&](std::size_t i) { require_same_dtype(op, x, *call.in(i)); };
  same(1);
  if (skip.rank() > x.rank() || !(broadcast(x.shape(), skip.shape(), op) == x.shape()))
    fail(QTN_ESHAPE, op, ": skip ", to_string(skip.shape()), " does not broadcast to x ", to_string(x.shape()));
  for (std::size_t i = 2; i < call.inputs.size(); ++i) {
    if (!call.in(i)) continue;
    same(i);
    if (!(call.in(i)->shape() == Shape{x.shape().back()}))
      fail(QTN_ESHAPE, op, ": input ", i, " is ", to_string(call.in(i)->shape()), ", the last axis of x ",
           to_string(x.shape()), " has ", x.shape().back());
  }
  Shape kept = x.shape();
  kept[kept.size() - 1] = 1;
  Types types{{x.dtype(), x.shape()}, {QTN_FLOAT32, kept}, {QTN_FLOAT32, kept}, {x.dtype(), x.shape()}};
  types.resize(std::min(call.output_count, types.size()));
  return types;
}

/// x + skip + bias, into the last output where it is wanted.
template <class T>
Tensor skip_sum(const Call &call, std::size_t bias, std::span<const Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const Tensor sum = outputs.size() > 3 && outputs[3].has_data() ? outputs[3] : Tensor(x.dtype(), x.shape());
  const auto add = [](T a, T b) { return a + b; };
  map_broadcast<T, T>(x, *call.in(1), x.shape(), sum.as<T>(), add);
  if (call.in(bias)) map_broadcast<T, T>(sum, *call.in(bias), x.shape(), sum.as<T>(), add);
  return sum;
}

/// Statistics are float32, whatever x is.
inline qdtype skip_dtype(const Attrs &, std::size_t output, qdtype moved) {
  return output == 1 || output == 2 ? QTN_FLOAT32 : moved;
}

/// Statistic i of the rows, or nullptr where it is not wanted.
inline float *statistic(std::span<const Tensor> outputs, std::size_t i) {
  return i < outputs.size() && outputs[i].has_data() ? outputs[i].as<float>() : nullptr;
}

}  // namespace qtn::ops
