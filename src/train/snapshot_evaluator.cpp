// SPDX-License-Identifier: Apache-2.0
#include "train/snapshot_evaluator.hpp"

#include <algorithm>
#include <cstring>

namespace qtn::train {
namespace {

/// The grids of a network whose values are rounded when they are all known; else none.
std::vector<ActivationGrid::Range> ranges_of(const Network &network) {
  std::vector<ActivationGrid::Range> ranges;
  if (!network.quantization || !network.switches.fake_quant) return ranges;
  for (const ActivationGrid &grid : network.quantization->activations) {
    if (!grid.range().seen) return {};
    ranges.push_back(grid.range());
  }
  return ranges;
}

bool equal(const Tensor &a, const Tensor &b) { return std::memcmp(a.data(), b.data(), a.nbytes()) == 0; }

}  // namespace

bool SnapshotEvaluator::current(const Network &network) const {
  const std::vector<Tensor> state = network.state();
  return session_ && std::equal(state.begin(), state.end(), state_.begin(), equal) && ranges_of(network) == ranges_;
}

std::vector<Tensor> SnapshotEvaluator::of(const Network &network, std::span<const Tensor *const> inputs) {
  if (!current(network)) {
    session_.reset();
    state_.clear();
    for (const Tensor &t : network.state()) state_.push_back(t.clone());
    ranges_ = ranges_of(network);
    session_ = std::make_unique<runtime::Session>(
        ranges_.empty() ? network.snapshot() : quant::convert(*network.prepared(), nullptr), runtime::SessionOptions{});
  }
  return session_->run(inputs);
}

}  // namespace qtn::train
