// SPDX-License-Identifier: Apache-2.0
// Extremes of every type: floats by kernels, bytes as floats, and all others by a loop.
#include "ops/common/extremum.hpp"
#include "ops/common/reduced_bytes.hpp"
#include "ops/common/reduced_floats.hpp"

namespace qtn::ops {
namespace {

template <class Extremum>
void reduce_by(Extremum extremum, const Tensor &x, const AxisSet &axes, const Tensor &y) {
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) > 1 && !std::is_same_v<T, float>)
      reduce<T, T>(
          x, axes, y, Extremum::template kOfNothing<T>, extremum, [](T v) { return v; }, kFewForFastLoops);
  });
}

}  // namespace

void reduce_extremum(kernels::Arithmetic f, const Call &call, const AxisSet &axes, const Tensor &y) {
  const Tensor &x = *call.in(0);
  if (x.dtype() == QTN_FLOAT32) return extremum_floats(f, x, axes, y);
  if (dtype_size(x.dtype()) == 1) return extremum_bytes(f, call, axes, y);
  f == kernels::Arithmetic::max ? reduce_by(Larger(), x, axes, y) : reduce_by(Smaller(), x, axes, y);
}

}  // namespace qtn::ops
