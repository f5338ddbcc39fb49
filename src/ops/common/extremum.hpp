// SPDX-License-Identifier: Apache-2.0
// The larger or smaller of numbers, for Max, Min, ReduceMax and ReduceMin. NaN wins.
#pragma once

#include <cmath>
#include <limits>

#include "ops/common/arithmetic.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/variadic.hpp"

namespace qtn::ops {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

/// Takes numbers, and vectors of integers.
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a > b || std::isnan(a) ? a : b;
    return a > b ? a : b;
  }
  /// What every number is larger than.
  template <class T>
  static constexpr T kOfNothing = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                       : std::numeric_limits<T>::lowest();
  static constexpr kernels::Arithmetic kOfReals = kernels::Arithmetic::max;
};

struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a < b || std::isnan(a) ? a : b;
    return a < b ? a : b;
  }
  template <class T>
  static constexpr T kOfNothing = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                       : std::numeric_limits<T>::max();
  static constexpr kernels::Arithmetic kOfReals = kernels::Arithmetic::min;
};

/// Tensors of any strides.
template <class Extremum>
void run_extremum(const Call &call, const Tensor &y, Extremum extremum) {
  const std::size_t count = call.inputs.size();
  const bool contiguous =
      y.contiguous() && std::ranges::all_of(call.inputs, [](const Tensor *x) { return x->contiguous(); });
  if (y.dtype() == QTN_FLOAT32 && contiguous && (count == 2 || (count > 2 && call.in(0)->shape() == y.shape()))) {
    run_arithmetic(Extremum::kOfReals, *call.in(0), *call.in(1), y);
    for (const Tensor *x : call.inputs.subspan(2)) run_arithmetic(Extremum::kOfReals, y, *x, y);
    return;
  }
  dispatch_number(y.dtype(), [&](auto zero) { fold_operands<decltype(zero)>(call, y, extremum); });
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
