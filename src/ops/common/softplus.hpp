// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace qtn::ops {

/// log(1 + exp(x)), where exp alone would overflow too.
template <class T>
T softplus(T x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

}  // namespace qtn::ops
