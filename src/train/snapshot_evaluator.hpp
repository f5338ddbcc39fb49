// SPDX-License-Identifier: Apache-2.0
// What a network in training answers: what its current model will.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.hpp"
#include "train/network.hpp"

namespace qtn::train {

class SnapshotEvaluator {
 public:
  /// SnapshotEvaluator of the converted model where values are rounded and every grid is known, else of the float one. A model is
  /// made where the network is not what it was the last time.
  std::vector<Tensor> of(const Network &network, std::span<const Tensor *const> inputs);

 private:
  bool current(const Network &network) const;

  std::vector<Tensor> state_;  ///< copies of what the session was made from
  std::vector<ActivationGrid::Range> ranges_;
  std::unique_ptr<const runtime::Session> session_;
};

}  // namespace qtn::train
