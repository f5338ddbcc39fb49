// SPDX-License-Identifier: Apache-2.0
// Functions of one number in float32, which networks have as activations, with their gradients, and exponentials for
// losses. Gradients, and the values of atan, cos, log, Mish, sin and softplus, are formed in double and rounded once.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

enum class Activation {
  atan,
  cos,
  erf,
  exp,
  gelu,
  gelu_by_tanh,
  hard_swish,
  log,
  mish,
  relu,
  sigmoid,
  sin,
  softplus,
  tanh
};

/// x sigmoid(alpha x)
struct Swish {
  float alpha;
};

/// below (e^(rate x) - 1) where x is negative, else above x
struct ExponentialUnit {
  double below, rate, above;
};

struct ActivationKernel {
  const char *name;
  Isa isa;
  /// y = f(x); y may be x
  void (*run)(Activation f, const float *x, float *y, std::size_t count);
  /// dx = dy f'(x). `at` is x; of exp, relu, sigmoid and tanh it is y.
  void (*backward)(Activation f, const float *at, const float *dy, float *dx, std::size_t count);
  /// y = f(x); y may be x
  void (*swish)(Swish f, const float *x, float *y, std::size_t count);
  void (*exponential_unit)(const ExponentialUnit &f, const float *x, float *y, std::size_t count);
  /// y = x, times its slope below zero: slopes[i], or one for all, where `step` is 1 or 0; y may be x
  void (*leaky)(const float *slopes, std::size_t step, const float *x, float *y, std::size_t count);
  /// y = exponential(x)
  void (*exponentials)(const double *x, double *y, std::size_t count);
};

std::span<const ActivationKernel> activation_kernels();

/// The one for the instruction set in force.
const ActivationKernel &activation_kernel();

}  // namespace qtn::kernels
