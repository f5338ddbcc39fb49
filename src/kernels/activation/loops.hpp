// SPDX-License-Identifier: Apache-2.0
// The loops that every instruction set compiles for itself.
#pragma once

#include "kernels/activation/activation.hpp"
#include "kernels/activation/functions.hpp"
#include "kernels/real_functions.hpp"

namespace qtn::kernels {
namespace {

template <class F>
void map(const float *x, float *y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<float>(F::value(x[i]));
}

template <class F>
void map_slopes(const float *__restrict at, const float *__restrict dy, float *__restrict dx, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = static_cast<float>(dy[i] * F::slope(at[i]));
}

/// Vectors of `bytes`.
template <int bytes>
void run_loops(Activation f, const float *x, float *y, std::size_t count) {
  using V = Functions<bytes>;
  switch (f) {
    case Activation::erf:
      return V::map(x, y, count, V::erf);
    case Activation::exp:
      return V::map(x, y, count, V::exp);
    case Activation::gelu:
      return V::map(x, y, count, V::gelu);
    case Activation::gelu_by_tanh:
      return V::map(x, y, count, V::gelu_by_tanh);
    case Activation::hard_swish:
      return map<HardSwish>(x, y, count);
    case Activation::mish:
      return map<Mish>(x, y, count);
    case Activation::relu:
      return map<Relu>(x, y, count);
    case Activation::sigmoid:
      return V::map(x, y, count, V::sigmoid);
    case Activation::tanh:
      return V::map(x, y, count, V::tanh);
  }
}

template <int bytes>
void swish_loop(float alpha, const float *x, float *y, std::size_t count) {
  using V = Functions<bytes>;
  V::map(x, y, count, [alpha](typename V::Floats v) { return V::gated(v, v * alpha); });
}

template <int bytes>
void leaky_loop(const float *slopes, std::size_t step, const float *x, float *y, std::size_t count) {
  using V = Functions<bytes>;
  if (step == 0)
    return V::map(x, y, count, [slope = *slopes](typename V::Floats v) { return v < 0.0f ? v * slope : v; });
  std::size_t i = 0;
  for (; i + V::kCount <= count; i += V::kCount) {
    const typename V::Floats v = V::load(x + i);
    V::store(y + i, v < 0.0f ? v * V::load(slopes + i) : v);
  }
  for (; i < count; ++i) y[i] = x[i] < 0.0f ? x[i] * slopes[i] : x[i];
}

inline void backward_loops(Activation f, const float *at, const float *dy, float *dx, std::size_t count) {
  switch (f) {
    case Activation::erf:
      return map_slopes<Erf>(at, dy, dx, count);
    case Activation::exp:
      return map_slopes<Exp>(at, dy, dx, count);
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
