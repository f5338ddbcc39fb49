// SPDX-License-Identifier: Apache-2.0
// Calibration data that is read sample by sample, as often as a method needs it, so that memory does not grow with it.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"

namespace qtn::quant {

struct Samples {
  std::size_t count;
  /// The inputs of the graph, in its order. What it throws ends the work.
  std::function<std::vector<Tensor>(std::size_t index)> read;
};

/// Told after each of `total` pieces of work of one kind; throws where the work is to end. May be empty.
using Progress = std::function<void(const char *stage, std::size_t done, std::size_t total)>;

}  // namespace qtn::quant
