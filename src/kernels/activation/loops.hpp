// SPDX-License-Identifier: Apache-2.0
// The loops that every instruction set compiles for itself.
#pragma once

#include "kernels/activation/activation.hpp"
#include "kernels/activation/functions.hpp"

namespace qtn::kernels {
namespace {

template <class F>
void map(const float *__restrict x, float *__restrict y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<float>(F::value(x[i]));
}

template <class F>
void map_slopes(const float *__restrict at, const float *__restrict dy, float *__restrict dx, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = static_cast<float>(dy[i] * F::slope(at[i]));
}

inline void run_loops(Activation f, const float *x, float *y, std::size_t count) {
  switch (f) {
    case Activation::gelu:
      return map<Gelu>(x, y, count);
    case Activation::gelu_by_tanh:
      return map<GeluByTanh>(x, y, count);
    case Activation::hard_swish:
      return map<HardSwish>(x, y, count);
    case Activation::mish:
      return map<Mish>(x, y, count);
    case Activation::relu:
      return map<Relu>(x, y, count);
    case Activation::sigmoid:
      return map<Sigmoid>(x, y, count);
    case Activation::tanh:
      return map<Tanh>(x, y, count);
  }
}

inline void backward_loops(Activation f, const float *at, const float *dy, float *dx, std::size_t count) {
  switch (f) {
    case Activation::gelu:
      return map_slopes<Gelu>(at, dy, dx, count);
    case Activation::gelu_by_tanh:
      return map_slopes<GeluByTanh>(at, dy, dx, count);
    case Activation::hard_swish:
      return map_slopes<HardSwish>(at, dy, dx, count);
    case Activation::mish:
      return map_slopes<Mish>(at, dy, dx, count);
    case Activation::relu:
      // A NaN passes on what comes, as PyTorch's does.
      for (std::size_t i = 0; i < count; ++i) dx[i] = at[i] <= 0 ? 0 : dy[i];
      return;
    case Activation::sigmoid:
      return map_slopes<Sigmoid>(at, dy, dx, count);
    case Activation::tanh:
      return map_slopes<Tanh>(at, dy, dx, count);
  }
}

inline void exponential_loop(const double *__restrict x, double *__restrict y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = exponential(x[i]);
}

}  // namespace
}  // namespace qtn::kernels
