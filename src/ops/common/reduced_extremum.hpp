// SPDX-License-Identifier: Apache-2.0
// The gradient of ReduceMax and ReduceMin.
#pragma once

#include "ops/common/gradient.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {

/// Elements that are equally large share dy, as in PyTorch's amax. The operator keeps inputs and outputs.
inline void backward_reduced_extremum(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  const Tensor &x = *run.call.in(0);
  const AxisSet axes = ready_axes(run.call);
  Shape kept = x.shape();
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (axes[i]) kept[i] = 1;
  const Tensor top = run.outputs[0].reshaped(kept), shares = scratch_tensor(run.scratch, kept);
  broadcast_gradient(
      shares, x, [](float v, float t) { return v == t ? 1.0f : 0.0f; }, top);
  map_gradient(shares, run.dy[0].reshaped(kept), shares, [](float slope, float count) { return slope / count; });
  broadcast_gradient(
      dx[0], x, [](float v, float t, float share) { return v == t ? share : 0.0f; }, top, shares);
}

}  // namespace qtn::ops
