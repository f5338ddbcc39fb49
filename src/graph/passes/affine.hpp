// SPDX-License-Identifier: Apache-2.0
// What a BatchNormalization computes when its statistics are constants.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

struct Affine {
  std::vector<float> factor, offset;
};

/// y = x*factor + offset of an inference BatchNormalization, in double until the last step.
Affine affine_of(const Graph &g, const Node &bn);

/// Whether there is such a form: all parameters are float32 constants of one length.
bool constant_parameters(const Graph &g, const Node &bn);

}  // namespace qtn::graph
