// SPDX-License-Identifier: Apache-2.0
// Samples, as the observers of a prepared model see them.
#pragma once

#include <cstddef>
#include <functional>
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

/// The same, and those of `some` also for `twin`, the same model observed again: one run through the graph serves both.
void calibrate_both(PreparedModel &prepared, PreparedModel &twin, const Samples &samples, const Samples &some);

}  // namespace qtn::quant
