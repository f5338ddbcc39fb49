// SPDX-License-Identifier: Apache-2.0
// Losses that are the mean over all elements of a function of output less target.
#pragma once

#include "base/error.hpp"
#include "core/tensor.hpp"
#include "train/blocks.hpp"

namespace qtn::train {

/// Throws unless the target is float32 and of the output's shape.
inline void check_alike(const char *who, const char *what, const Tensor &output, const Tensor &target) {
  if (target.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, who, ": the ", what, " is ", dtype_name(target.dtype()), ", not float32");
  if (target.shape() != output.shape())
    fail(QTN_ESHAPE, who, ": the ", what, " is ", to_string(target.shape()), ", the output ",
         to_string(output.shape()));
}

struct Slope {
  double value, slope;
};

/// f(difference) is a Slope.
template <class F>
double run_pointwise(const char *who, const Tensor &output, const Tensor &target, const Tensor &dy, const F &f) {
  check_alike(who, "target", output, target);
  const Tensor flat = target.to_contiguous();
  const auto *y = output.as<const float>(), *t = flat.as<const float>();
  auto *to = dy.as<float>();
  const auto count = static_cast<std::size_t>(output.count());
  const auto elements = static_cast<double>(count);
  constexpr std::size_t kLeast = 4096;
  const double sum = sum_blocks(count, kLeast, [&](std::size_t begin, std::size_t end) {
    double part = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const Slope s = f(static_cast<double>(y[i]) - static_cast<double>(t[i]));
      part += s.value;
      to[i] = static_cast<float>(s.slope / elements);
    }
    return part;
  });
  return sum / elements;
}

}  // namespace qtn::train
