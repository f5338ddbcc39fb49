// SPDX-License-Identifier: Apache-2.0
// The functions that the gates of recurrent networks go through.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attrs.hpp"
#include "kernels/activation/activation.hpp"
#include "ops/common/softplus.hpp"

namespace qtn::ops {

struct GateActivation {
  enum Kind {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus
  } kind;
  double alpha, beta;

  template <class T>
  T operator()(T x) const {
    const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
    switch (kind) {
      case relu:
        return std::max(x, T(0));
      case tanh:
        return std::tanh(x);
      case sigmoid:
        return 1 / (1 + std::exp(-x));
      case affine:
        return a * x + b;
      case leaky_relu:
        return x >= 0 ? x : a * x;
      case thresholded_relu:
        return x >= a ? x : T(0);
      case scaled_tanh:
        return a * std::tanh(b * x);
      case hard_sigmoid:
        return std::clamp(a * x + b, T(0), T(1));
      case elu:
        return x >= 0 ? x : a * std::expm1(x);
      case softsign:
        return x / (1 + std::abs(x));
      default:
        return ops::softplus(x);
    }
  }

  /// The derivative where the result is y.
  float slope(float y) const {
    const float a = static_cast<float>(alpha), b = static_cast<float>(beta);
    switch (kind) {
      case relu:
      case thresholded_relu:
        return y > 0 ? 1.0f : 0.0f;
      case tanh:
        return 1 - y * y;
      case sigmoid:
        return y * (1 - y);
      case affine:
        return a;
      case leaky_relu:
        return y >= 0 ? 1.0f : a;
      case scaled_tanh:
        return b * (a - y * y / a);
      case hard_sigmoid:
        return y > 0 && y < 1 ? a : 0.0f;
      case elu:
        return y >= 0 ? 1.0f : y + a;
      case softsign:
        return (1 - std::abs(y)) * (1 - std::abs(y));
      default:
        return 1 - std::exp(-y);
    }
  }
};

/// In place: clipped to [-clip, clip], then f. The usual functions of floats have kernels.
template <class T>
void activate(const GateActivation &f, double clip, T *x, std::int64_t count) {
  if (clip < std::numeric_limits<double>::infinity())
    for (std::int64_t i = 0; i < count; ++i) x[i] = std::clamp(x[i], static_cast<T>(-clip), static_cast<T>(clip));
  if constexpr (std::is_same_v<T, float>)
    if (f.kind <= GateActivation::sigmoid) {
      constexpr kernels::Activation kForms[] = {kernels::Activation::relu, kernels::Activation::tanh,
                                                kernels::Activation::sigmoid};
      return kernels::activation_kernel().run(kForms[f.kind], x, x, static_cast<std::size_t>(count));
    }
  for (std::int64_t i = 0; i < count; ++i) x[i] = f(x[i]);
}

/// The attribute activations, or as many of `defaults` as there are directions; what else they need is taken in their
/// order from activation_alpha and activation_beta. Throws QTN_EINVAL.
std::vector<GateActivation> gate_activations(const char *op, const Attrs &attrs, std::size_t directions,
                                             const std::vector<std::string> &defaults);

}  // namespace qtn::ops
