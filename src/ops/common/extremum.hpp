// SPDX-License-Identifier: Apache-2.0
// The larger or smaller of numbers, for Max, Min, ReduceMax and ReduceMin. NaN wins.
#pragma once

#include <cmath>
#include <limits>

#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || is_nan(a) ? a : b;
  }
  /// What every number is larger than.
  template <class T>
  static constexpr T kOfNothing = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                       : std::numeric_limits<T>::lowest();
};

struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || is_nan(a) ? a : b;
  }
  template <class T>
  static constexpr T kOfNothing = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                       : std::numeric_limits<T>::max();
};

/// Any count of operands of one type, broadcast to one shape.
inline Types infer_extremum(const char *op, const Call &call) {
  const Tensor &first = *call.in(0);
  require_number(op, "input 0", first);
  Shape shape = first.shape();
  for (const Tensor *x : call.inputs.subspan(1)) {
    require_same_dtype(op, first, *x);
    shape = broadcast(shape, x->shape(), op);
  }
  return {{first.dtype(), shape}};
}

/// Tensors of any strides.
template <class Extremum>
void run_extremum(const Call &call, const Tensor &y, Extremum extremum) {
  const Shape &shape = y.shape();
  copy_elements(y, call.in(0)->view(shape, steps_over(*call.in(0), shape)));
  dispatch_number(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (const Tensor *x : call.inputs.subspan(1))
      for_rows<2>(shape, {y.strides(), steps_over(*x, shape)}, [&](const auto &at, const auto &steps, std::int64_t n) {
        T *to = y.as<T>() + at[0];
        const T *from = x->as<const T>() + at[1];
        for (std::int64_t i = 0; i < n; ++i) to[i * steps[0]] = extremum(to[i * steps[0]], from[i * steps[1]]);
      });
  });
}

/// Operands that are equally large share dy. The operator keeps inputs and outputs.
inline void backward_extremum(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &y = run.outputs[0], &dy = run.dy[0];
  const Tensor shares = scratch_tensor(run.scratch, y.shape());
  std::fill_n(shares.as<float>(), y.count(), 0.0f);
  for (const Tensor *x : run.call.inputs)
    broadcast_gradient(
        shares, y, [](float top, float count, float v) { return count + (v == top ? 1.0f : 0.0f); }, shares, *x);
  map_gradient(shares, dy, shares, [](float slope, float count) { return slope / count; });
  for (std::size_t i = 0; i < dx.size(); ++i)
    broadcast_gradient(
        dx[i], shares, [](float share, float top, float v) { return v == top ? share : 0.0f; }, y, *run.call.in(i));
}

}  // namespace qtn::ops
