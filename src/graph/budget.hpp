// SPDX-License-Identifier: Apache-2.0
// What a model may cost that its file and its inputs do not pay for: a file of a hundred bytes can say "a billion
// zeros", and a product of such.
#pragma once

#include <span>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Bytes of the constants of a graph; memory that several share counts once.
std::size_t constant_bytes(const Graph &g);

/// Bytes that a run may take at a time: what the limit run_bytes says, or else so much memory in any case, and more in
/// proportion to what constants and inputs take; never more than a RunBound of this thread.
std::size_t run_limit(std::size_t constants, std::size_t inputs);

/// What runs within a run, a body of a loop for instance, has inputs that the run has made, which pay for nothing.
class RunBound {
 public:
  explicit RunBound(std::size_t limit);
  ~RunBound();
  RunBound(const RunBound &) = delete;
  RunBound &operator=(const RunBound &) = delete;

  /// The innermost one of this thread; without one, the largest number.
  static std::size_t limit();

 private:
  std::size_t outer_;
};

/// Throws QTN_ENOMEM naming both where a run would take more.
void check_run(std::size_t bytes, std::size_t limit);

/// What may be computed of constants before a run. What is too large is left to the runs.
class FoldBudget {
 public:
  /// Results may take some memory in any case, and more beside `constants` bytes of a file.
  explicit FoldBudget(std::size_t constants);

  /// For lists of dimensions and the like, and not for what a batch of thousands makes of these.
  static FoldBudget of_shapes();

  /// Whether running the node is within what is left, from which it is taken then. Throws QTN_EUNSUPPORTED where what
  /// is not would take every run far longer.
  bool take(const Node &node, std::span<const Tensor *const> operands, std::span<const ops::TensorType> results);
  /// The same for an operator that finds its results (OpDef::make): before it is asked what these are.
  bool take(const Node &node, std::span<const Tensor *const> operands);
  /// The same for any bytes.
  bool take(std::size_t bytes);

 private:
  FoldBudget(std::size_t bytes, double work) : bytes_(bytes), work_(work) {}

  std::size_t bytes_;
  double work_;              ///< elements that are read or written, and products: what takes about a nanosecond
  double left_to_runs_ = 0;  ///< the same of what is over the budget
};

}  // namespace qtn::graph
