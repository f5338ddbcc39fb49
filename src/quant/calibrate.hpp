// SPDX-License-Identifier: Apache-2.0
// Samples, as the observers of a prepared model see them.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// Runs one sample (or batch) through the float graph and shows each observed tensor, finite, with the index of its
/// group. Errors of `see` get the tensor's name and the sample's number. The sample is not counted.
void show(PreparedModel &prepared, std::span<const Tensor *const> inputs, std::size_t number,
          const std::function<void(std::size_t group, const Tensor &)> &see);

/// Runs one sample (or batch) through the float graph. One tensor for each graph input, in order. Throws and leaves
/// every observer as it was on inputs that do not fit or on NaN and infinity (naming the tensor and the sample).
void calibrate(PreparedModel &prepared, std::span<const Tensor *const> inputs);

/// Each of them.
void calibrate_all(PreparedModel &prepared, const Samples &samples);

/// A model, and which samples it is to see.
struct Onlooker {
  Onlooker(PreparedModel &model, const Samples &samples);

  PreparedModel *model;
  std::set<std::size_t> numbers;
  bool refused = false;  ///< its observers refused a tensor; it has seen the samples before
};

/// Models that observe the same graph, as observed_anew() makes them: one run for each of the samples serves all that are to
/// see it. One that refuses a tensor sees no more; where it was the last, its error is thrown.
void calibrate_together(std::span<Onlooker> onlookers, const Samples &samples);

}  // namespace qtn::quant
