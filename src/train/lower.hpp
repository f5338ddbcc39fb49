// SPDX-License-Identifier: Apache-2.0
// From a network to the steps that compute it for inputs of certain shapes.
#pragma once

#include "train/network.hpp"
#include "train/step.hpp"

namespace qtn::train {

struct Lowered {
  std::vector<Slot> slots;
  std::vector<StepPtr> steps;  ///< in an order in which each reads what earlier ones wrote
  std::vector<SlotId> inputs, outputs;
};

/// Without tensors except those that are given. Throws as Program does.
Lowered lower(Network &network, std::span<const ops::TensorType> inputs);

}  // namespace qtn::train
