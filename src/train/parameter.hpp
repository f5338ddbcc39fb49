// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/tensor.hpp"

namespace qtn::train {

/// The mean of so many batches before and one more. For two it is what several processes compute, bit for bit: the sum,
/// halved.
inline float mean_of_batches(float earlier, float one, std::size_t count) {
  return count == 0 ? one : (earlier * static_cast<float>(count) + one) / static_cast<float>(count + 1);
}

/// What an optimizer moves. Both tensors are contiguous float32 of one shape, and written in place.
struct Parameter {
  std::string name;
  Tensor value, gradient;
  float rate_factor = 1;                    ///< its learning rate is this times the optimizer's
  bool decays = true;                       ///< false for biases, weights of normalizations and scales: no weight decay
  std::optional<double> weight_decay = {};  ///< in place of the optimizer's, whatever `decays` says
  bool frozen = false;                      ///< does not move, and gets no gradient
};

}  // namespace qtn::train
