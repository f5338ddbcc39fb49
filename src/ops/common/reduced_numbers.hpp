// SPDX-License-Identifier: Apache-2.0
// Reductions that are sums of a function of each element, of the types that ONNX gives them.
#pragma once

#include <cmath>

#include "ops/common/convert.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {

inline Types infer_reduced_number(const char *op, const Call &call) {
  require_dtype(op, "x", *call.in(0), {QTN_FLOAT32, QTN_FLOAT64, QTN_INT32, QTN_INT64, QTN_UINT32, QTN_UINT64});
  return infer_reduction(op, call);
}

/// f(T{}) for these types.
template <class F>
void dispatch_reduced(qdtype dtype, F &&f) {
  switch (dtype) {
    case QTN_FLOAT32:
      return f(float{});
    case QTN_FLOAT64:
      return f(double{});
    case QTN_INT32:
      return f(std::int32_t{});
    case QTN_INT64:
      return f(std::int64_t{});
    case QTN_UINT32:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

/// y = the sum of f(element, the same as wide as the sum), which wraps around for integers.
template <class F>
void sum_mapped(const Call &call, const Tensor &y, F &&f) {
  dispatch_reduced(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
    reduce<T, T>(
        *call.in(0), ready_axes(call), y, Wide(0), [&](Wide sum, T v) { return sum + f(v, static_cast<Wide>(v)); },
        [](Wide sum) { return static_cast<T>(sum); });
  });
}

/// y = finish(sum of f(element)), in double.
template <class F, class Finish>
void reduce_doubles(const Call &call, const Tensor &y, F &&f, Finish &&finish) {
  dispatch_reduced(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    reduce<T, T>(
        *call.in(0), ready_axes(call), y, 0.0, [&](double sum, T v) { return sum + f(static_cast<double>(v)); },
        [&](double sum) { return convert<T>(finish(sum)); });
  });
}

/// dx = f(dy, x, y) with what each element was reduced to. The operator keeps input 0 and the output.
template <class F>
void backward_reduced(const Backward &run, const Tensor &dx, F &&f) {
  if (!dx.has_data()) return;
  const Tensor &x = *run.call.in(0);
  const AxisSet axes = ready_axes(run.call);
  Shape kept = x.shape();
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (axes[i]) kept[i] = 1;
  broadcast_gradient(
      dx, x, [&](float v, float slope, float result) { return f(slope, v, result); }, run.dy[0].reshaped(kept),
      run.outputs[0].reshaped(kept));
}

}  // namespace qtn::ops
