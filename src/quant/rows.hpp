// SPDX-License-Identifier: Apache-2.0
// How many rows samples have. Some are batches: what a user counts are the rows of these.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// The first dimension of the first input, where that is a batch: the graph leaves it open, or outputs have it too.
/// Else 1.
std::size_t rows_of(const graph::Graph &g, std::span<const Tensor> inputs);

class RowCount {
 public:
  /// The graph stays with the caller.
  explicit RowCount(const graph::Graph &g) : g_(g) {}

  /// The same samples, whose rows are counted when they are read. They and the count stay with the caller.
  Samples watch(const Samples &samples);

  /// The rows of samples, or of some of them, that have been read.
  std::size_t of(const Samples &samples) const;

 private:
  const graph::Graph &g_;
  std::vector<std::size_t> rows_;  // by the number of a sample
};

}  // namespace qtn::quant
