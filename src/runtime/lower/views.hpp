// SPDX-License-Identifier: Apache-2.0
// Moving operators that need not move: their output is the input's memory under other shapes and strides.
#pragma once

#include "graph/graph.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

struct View {
  Shape shape, strides;
  std::ptrdiff_t offset;  ///< elements
};

/// One view for each output of a node that moves input 0, which lies as `x` says; nullopt where elements must be
/// copied. `operands` hold constants (with data) or types; `types` are the outputs'.
std::optional<std::vector<View>> views_of(const graph::Node &node, const SlotForm &x,
                                          std::span<const Tensor *const> operands,
                                          std::span<const ops::TensorType> types);

}  // namespace qtn::runtime
