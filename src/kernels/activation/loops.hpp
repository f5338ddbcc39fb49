// SPDX-License-Identifier: Apache-2.0
// The loops that every instruction set compiles for itself.
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/activation/activation.hpp"
#include "kernels/activation/functions.hpp"
#include "kernels/real_functions.hpp"

namespace qtn::kernels {
namespace {

constexpr std::size_t kAtOnce = 16;  // elements, of which compilers make vectors without loops for a rest

template <class F>
void map_blocks(const float *x, float *y, std::size_t blocks) {
  for (; blocks > 0; --blocks, x += kAtOnce, y += kAtOnce) {
    float block[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i) block[i] = static_cast<float>(F::value(x[i]));
    std::memcpy(y, block, sizeof block);
  }
}

/// All elements, of which the last ones need not be a whole block.
[[gnu::noinline]] void map(void (*blocks)(const float *, float *, std::size_t), const float *x, float *y,
                           std::size_t count) {
  const std::size_t whole = count / kAtOnce, rest = count % kAtOnce;
  blocks(x, y, whole);
  if (rest == 0) return;
  float last[kAtOnce] = {};
  std::memcpy(last, x + count - rest, rest * sizeof(float));
  blocks(last, last, 1);
  std::memcpy(y + count - rest, last, rest * sizeof(float));
}

template <class F>
void map_slope_blocks(const float *at, const float *dy, float *dx, std::size_t blocks) {
  for (; blocks > 0; --blocks, at += kAtOnce, dy += kAtOnce, dx += kAtOnce) {
    float block[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i) block[i] = static_cast<float>(dy[i] * F::slope(at[i]));
    std::memcpy(dx, block, sizeof block);
  }
}

[[gnu::noinline]] void map_slopes(void (*blocks)(const float *, const float *, float *, std::size_t), const float *at,
                                  const float *dy, float *dx, std::size_t count) {
  const std::size_t whole = count / kAtOnce, rest = count % kAtOnce;
  blocks(at, dy, dx, whole);
  if (rest == 0) return;
  float last[2][kAtOnce] = {};
  std::memcpy(last[0], at + count - rest, rest * sizeof(float));
  std::memcpy(last[1], dy + count - rest, rest * sizeof(float));
  blocks(last[0], last[1], last[0], 1);
  std::memcpy(dx + count - rest, last[0], rest * sizeof(float));
}

inline bool is_near(float x, double farthest) { return std::fabs(static_cast<double>(x)) <= farthest; }

inline bool are_near(const float *x, std::size_t count, double farthest) {
  std::size_t near = 0;
  for (std::size_t i = 0; i < count; ++i) near += is_near(x[i], farthest) ? 1 : 0;
  return near == count;
}

/// A function that another one, which is slow, stands in for beyond kFarthest.
template <class F>
void map_periodic(const float *x, float *y, std::size_t count) {
  if (are_near(x, count, F::kFarthest)) return map(map_blocks<F>, x, y, count);
  for (std::size_t i = 0; i < count; ++i)
    y[i] = static_cast<float>(is_near(x[i], F::kFarthest) ? F::value(x[i]) : F::far_value(x[i]));
}

template <class F>
void map_periodic_slopes(const float *at, const float *dy, float *dx, std::size_t count) {
  if (are_near(at, count, F::kFarthest)) return map_slopes(map_slope_blocks<F>, at, dy, dx, count);
  for (std::size_t i = 0; i < count; ++i)
    dx[i] = static_cast<float>(dy[i] * (is_near(at[i], F::kFarthest) ? F::slope(at[i]) : F::far_slope(at[i])));
}

/// Vectors of `bytes`.
template <int bytes>
void run_loops(Activation f, const float *x, float *y, std::size_t count) {
  using V = Functions<bytes>;
  switch (f) {
    case Activation::atan:
      return map(map_blocks<Atan>, x, y, count);
    case Activation::cos:
      return map_periodic<Cos>(x, y, count);
    case Activation::erf:
      return V::map(x, y, count, V::erf);
    case Activation::exp:
      return V::map(x, y, count, V::exp);
    case Activation::gelu:
      return V::map(x, y, count, V::gelu);
    case Activation::gelu_by_tanh:
      return V::map(x, y, count, V::gelu_by_tanh);
    case Activation::hard_swish:
      return map(map_blocks<HardSwish>, x, y, count);
    case Activation::log:
      return map(map_blocks<Log>, x, y, count);
    case Activation::mish:
      return map(map_blocks<Mish>, x, y, count);
    case Activation::relu:
      return map(map_blocks<Relu>, x, y, count);
    case Activation::sigmoid:
      return V::map(x, y, count, V::sigmoid);
    case Activation::sin:
      return map_periodic<Sin>(x, y, count);
    case Activation::softplus:
      return map(map_blocks<Softplus>, x, y, count);
    case Activation::tanh:
      return V::map(x, y, count, V::tanh);
  }
}

template <int bytes>
void swish_loop(Swish f, const float *x, float *y, std::size_t count) {
  using V = Functions<bytes>;
  V::map(x, y, count, [alpha = f.alpha](typename V::Floats v) { return V::gated(v, v * alpha); });
}

template <int bytes>
void exponential_unit_loop(const ExponentialUnit &f, const float *x, float *y, std::size_t count) {
  using V = Functions<bytes>;
  const auto below = static_cast<float>(f.below), rate = static_cast<float>(f.rate),
             above = static_cast<float>(f.above);
  V::map(x, y, count, [=](typename V::Floats v) { return v < 0.0f ? below * V::less_one(v * rate) : above * v; });
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
    case Activation::atan:
      return map_slopes(map_slope_blocks<Atan>, at, dy, dx, count);
    case Activation::cos:
      return map_periodic_slopes<Cos>(at, dy, dx, count);
    case Activation::erf:
      return map_slopes(map_slope_blocks<Erf>, at, dy, dx, count);
    case Activation::exp:
      return map_slopes(map_slope_blocks<Exp>, at, dy, dx, count);
    case Activation::gelu:
      return map_slopes(map_slope_blocks<Gelu>, at, dy, dx, count);
    case Activation::gelu_by_tanh:
      return map_slopes(map_slope_blocks<GeluByTanh>, at, dy, dx, count);
    case Activation::hard_swish:
      return map_slopes(map_slope_blocks<HardSwish>, at, dy, dx, count);
    case Activation::log:
      return map_slopes(map_slope_blocks<Log>, at, dy, dx, count);
    case Activation::mish:
      return map_slopes(map_slope_blocks<Mish>, at, dy, dx, count);
    case Activation::relu:
      // A NaN passes on what comes, as PyTorch's does.
      for (std::size_t i = 0; i < count; ++i) dx[i] = at[i] <= 0 ? 0 : dy[i];
      return;
    case Activation::sigmoid:
      return map_slopes(map_slope_blocks<Sigmoid>, at, dy, dx, count);
    case Activation::sin:
      return map_periodic_slopes<Sin>(at, dy, dx, count);
    case Activation::softplus:
      return map_slopes(map_slope_blocks<Softplus>, at, dy, dx, count);
    case Activation::tanh:
      return map_slopes(map_slope_blocks<Tanh>, at, dy, dx, count);
  }
}

inline void exponential_loop(const double *__restrict x, double *__restrict y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = exponential(x[i]);
}

}  // namespace
}  // namespace qtn::kernels
