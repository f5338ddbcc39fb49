// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan run graphs, which a node of a graph has (graph::Node::bodies) and a call alone has not.
#pragma once

#include "base/error.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

inline std::vector<TensorType> infer_control(const Call &) {
  throw NotKnown("what it makes depends on the graphs that it runs, which only a node of a model has");
}

inline void run_control(const Call &call, std::span<Tensor>) { infer_control(call); }

}  // namespace qtn::ops
