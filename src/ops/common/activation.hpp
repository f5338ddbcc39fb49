// SPDX-License-Identifier: Apache-2.0
// Activations on the kernels for them.
#pragma once

#include <cmath>

#include "kernels/activation/activation.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {

/// run(x, y, count) for blocks of two tensors of float32.
template <class Run>
void for_activation_blocks(const Tensor &x, const Tensor &y, const Run &run) {
  const float *from = x.as<const float>();
  float *to = y.as<float>();
  for_blocks(x.count(), [&](std::int64_t begin, std::int64_t end) {
    run(from + begin, to + begin, static_cast<std::size_t>(end - begin));
  });
}

/// y = f(x) in float32.
inline void run_activation(kernels::Activation f, const Tensor &x, const Tensor &y) {
  for_activation_blocks(x, y, [f, run = kernels::activation_kernel().run](auto... block) { run(f, block...); });
}

/// y = f(x), in float32 by the kernel, in float64 by `wide`.
template <class F>
void run_activation(kernels::Activation f, const Call &call, std::span<Tensor> outputs, F &&wide) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  x.dtype() == QTN_FLOAT64 ? map_elements<double>(x, y, wide) : run_activation(f, x, y);
}

/// y = x sigmoid(alpha x) in float32 or float64.
inline void run_swish(double alpha, const Tensor &x, const Tensor &y) {
  if (x.dtype() == QTN_FLOAT64)
    return map_elements<double>(x, y, [alpha](double v) { return v * (1 / (1 + std::exp(-alpha * v))); });
  const kernels::Swish f{static_cast<float>(alpha)};
  for_activation_blocks(x, y, [f, run = kernels::activation_kernel().swish](auto... block) { run(f, block...); });
}

/// y = x, times the slope below zero, in float32.
inline void run_leaky(float slope, const Tensor &x, const Tensor &y) {
  for_activation_blocks(x, y,
                        [slope, run = kernels::activation_kernel().leaky](auto... block) { run(&slope, 0, block...); });
}

/// The same with slopes that are broadcast to x.
inline void run_leaky(const Tensor &slopes, const Tensor &x, const Tensor &y) {
  const Shape &shape = y.shape();
  const std::array<Shape, 3> strides{steps_over(y, shape), steps_over(x, shape), steps_over(slopes, shape)};
  for_rows(shape, strides,
           [&, run = kernels::activation_kernel().leaky](const auto &at, const auto &steps, std::int64_t length) {
             const float *slope = slopes.as<const float>() + at[2], *from = x.as<const float>() + at[1];
             float *to = y.as<float>() + at[0];
             if (steps[0] == 1 && steps[1] == 1 && steps[2] <= 1)
               return run(slope, static_cast<std::size_t>(steps[2]), from, to, static_cast<std::size_t>(length));
             for (std::int64_t i = 0; i < length; ++i) {
               const float v = from[i * steps[1]];
               to[i * steps[0]] = v < 0 ? v * slope[i * steps[2]] : v;
             }
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
