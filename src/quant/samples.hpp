// SPDX-License-Identifier: Apache-2.0
// Calibration data that is read sample by sample, as often as a method needs it, so that memory does not grow with it.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "core/tensor.hpp"

namespace qtn::quant {

struct Samples {
  std::size_t count;
  /// The inputs of the graph, in its order. What it throws ends the work.
  std::function<std::vector<Tensor>(std::size_t index)> read;
  /// What the user calls them, where they are some of all.
  std::vector<std::size_t> numbers = {};

  std::size_t number(std::size_t index) const { return numbers.empty() ? index : numbers[index]; }
};

/// What reading a sample threw, which says nothing about the sample.
class NotRead : public Error {
 public:
  using Error::Error;
};

/// The same samples, which throw NotRead in place of Error. All of it stays with the caller.
Samples marked(const Samples &samples);

/// Told after each of `total` pieces of work of one kind; throws where the work is to end. May be empty.
using Progress = std::function<void(const char *stage, std::size_t done, std::size_t total)>;

/// The same samples, each of which is progress when it is read. All of it stays with the caller.
Samples counted(const Samples &samples, const char *stage, const Progress &progress);

/// Evenly spread over all; these stay with the caller.
Samples some_of(const Samples &all, std::size_t most);

/// Those with these indices, in this order; `all` stays with the caller.
Samples chosen(const Samples &all, const std::vector<std::size_t> &indices);

/// Those of `first`, then those of `second`; both stay with the caller.
Samples joined(const Samples &first, const Samples &second);

/// Parts of all samples, each evenly spread and in order. A single sample is in both.
struct Division {
  Samples fitted;     ///< at most `most`
  Samples held_back;  ///< a third of all, at most `most`
  Samples rest;       ///< all but those fitted
};

Division divide(const Samples &all, std::size_t most);

}  // namespace qtn::quant
