// SPDX-License-Identifier: Apache-2.0
// Activations on the kernels for them.
#pragma once

#include <cmath>

#include "kernels/activation/activation.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {

/// y = f(x) in float32.
inline void run_activation(kernels::Activation f, const Tensor &x, const Tensor &y) {
  const float *from = x.as<const float>();
  float *to = y.as<float>();
  for_blocks(x.count(), [=, run = kernels::activation_kernel().run](std::int64_t begin, std::int64_t end) {
    run(f, from + begin, to + begin, static_cast<std::size_t>(end - begin));
  });
}

/// y = x sigmoid(alpha x) in float32 or float64.
inline void run_swish(double alpha, const Tensor &x, const Tensor &y) {
  if (x.dtype() == QTN_FLOAT64)
    return map_elements<double>(x, y, [alpha](double v) { return v / (1 + std::exp(-alpha * v)); });
  const float *from = x.as<const float>();
  float *to = y.as<float>();
  for_blocks(x.count(), [=, run = kernels::activation_kernel().swish](std::int64_t begin, std::int64_t end) {
    run(static_cast<float>(alpha), from + begin, to + begin, static_cast<std::size_t>(end - begin));
  });
}

/// `at` is x or y, as the kernel wants it.
inline void backward_activation(kernels::Activation f, const Tensor &at, const Tensor &dy, const Tensor &dx) {
  if (!dx.has_data()) return;
  const float *from = at.as<const float>(), *slope = dy.as<const float>();
  float *to = dx.as<float>();
  for_blocks(dx.count(), [=, run = kernels::activation_kernel().backward](std::int64_t begin, std::int64_t end) {
    run(f, from + begin, slope + begin, to + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace qtn::ops
