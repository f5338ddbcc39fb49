// SPDX-License-Identifier: Apache-2.0
// Activations of networks in float32 and their gradients, and exponentials for losses. Functions that have no exact
// value are formed in double and rounded once.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

enum class Activation { gelu, gelu_by_tanh, hard_swish, mish, relu, sigmoid, tanh };

struct ActivationKernel {
  const char *name;
  Isa isa;
  /// y = f(x)
  void (*run)(Activation f, const float *x, float *y, std::size_t count);
  /// dx = dy f'(x). `at` is x; of relu, sigmoid and tanh it is y.
  void (*backward)(Activation f, const float *at, const float *dy, float *dx, std::size_t count);
  /// y = exponential(x)
  void (*exponentials)(const double *x, double *y, std::size_t count);
};

std::span<const ActivationKernel> activation_kernels();

/// The one for the instruction set in force.
const ActivationKernel &activation_kernel();

}  // namespace qtn::kernels
