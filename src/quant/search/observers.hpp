// SPDX-License-Identifier: Apache-2.0
// Which observer is best for which tensor.
#pragma once

#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// What an observer's grid costs: the part of the signal lost in the outputs of the layers that read the tensor.
struct ObserverLoss {
  std::string observer;
  double loss = 0;
};

struct ObserverChoice {
  std::string tensor;
  std::vector<ObserverLoss> candidates;  ///< in the order in which they were tried
  std::size_t chosen = 0;
};

/// Calibrates with every observer at once and keeps, for each group of tensors that share a grid, the one with the
/// least loss on `probes`.
std::vector<ObserverChoice> choose_observers(PreparedModel &prepared, const Samples &samples, const Samples &probes);

}  // namespace qtn::quant
