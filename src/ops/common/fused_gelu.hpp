// SPDX-License-Identifier: Apache-2.0
// Gelu with a bias in front of it, as ONNX Runtime's tools fuse them.
#pragma once

#include "ops/common/activation.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

inline Types infer_fused_gelu(const char *op, const Call &call) {
  const Tensor &x = *call.in(0);
  require_float(op, "x", &x);
  if (const Tensor *bias = call.in(1)) {
    require_float(op, "bias", bias);
    if (x.rank() == 0 || !(bias->shape() == Shape{x.shape().back()}))
      fail(QTN_ESHAPE, op, ": bias is ", to_string(bias->shape()), ", x ", to_string(x.shape()));
  }
  return {{x.dtype(), x.shape()}};
}

inline void run_fused_gelu(kernels::Activation form, const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  if (!call.in(1)) return run_activation(form, x, y);
  map_broadcast<float, float>(x, *call.in(1), y.shape(), y.as<float>(), [](float a, float b) { return a + b; });
  run_activation(form, y, y);
}

}  // namespace qtn::ops
