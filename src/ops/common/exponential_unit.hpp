// SPDX-License-Identifier: Apache-2.0
// Elu and its relatives: below (e^(rate x) - 1) where x is negative, else above x.
#pragma once

#include <cmath>

#include "base/elementary.hpp"
#include "ops/common/activation.hpp"
#include "ops/common/gradient.hpp"

namespace qtn::ops {

/// As a file holds it: the same network gives the same bits before and after it was saved.
inline double factor_of(const Attrs &attrs, const char *name, float absent) {
  return static_cast<double>(static_cast<float>(attrs.get_float(name, static_cast<double>(absent))));
}

inline kernels::ExponentialUnit celu_of(const Attrs &attrs) {
  const double alpha = factor_of(attrs, "alpha", 1);
  return {.below = alpha, .rate = 1 / alpha, .above = 1};
}

inline kernels::ExponentialUnit elu_of(const Attrs &attrs) {
  return {.below = factor_of(attrs, "alpha", 1), .rate = 1, .above = 1};
}

inline kernels::ExponentialUnit selu_of(const Attrs &attrs) {
  const double alpha = factor_of(attrs, "alpha", 1.67326319217681884765625f);
  const double gamma = factor_of(attrs, "gamma", 1.05070102214813232421875f);
  return {.below = gamma * alpha, .rate = 1, .above = gamma};
}

/// y = f(x) in float32 or float64.
inline void run_exponential_unit(const kernels::ExponentialUnit &f, const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (x.dtype() == QTN_FLOAT64)
    return map_elements<double>(x, y, [f](double v) { return v < 0 ? f.below * std::expm1(f.rate * v) : f.above * v; });
  for_activation_blocks(x, y,
                        [&f, run = kernels::activation_kernel().exponential_unit](auto... block) { run(f, block...); });
}

/// At 0 the slope is that of what is below, as in PyTorch.
inline void backward_exponential_unit(const kernels::ExponentialUnit &f, const Backward &run,
                                      std::span<const Tensor> dx) {
  backward_by_input(run, dx, [f](float slope, float x) {
    const double rate = x <= 0 ? f.below * f.rate * exponential(f.rate * static_cast<double>(x)) : f.above;
    return static_cast<float>(static_cast<double>(slope) * rate);
  });
}

}  // namespace qtn::ops
