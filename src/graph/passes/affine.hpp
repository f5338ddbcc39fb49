// SPDX-License-Identifier: Apache-2.0
// A factor and an offset for each channel, such as a BatchNormalization computes whose statistics are constants.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

struct Affine {
  std::vector<float> factor, offset;
};

/// y = x*factor + offset of an inference BatchNormalization, in double until the last step.
Affine affine_of(const Graph &g, const Node &bn);

/// Whether there is such a form: all parameters are float32 constants of one length, and not those of a batch.
bool constant_parameters(const Graph &g, const Node &bn);

/// Whether the value is a constant of plain numbers, without a grid.
bool plain_constant(const Graph &g, ValueId v);

/// Makes them part of the weights and the bias of a Conv, ConvTranspose or Gemm, whose result they are applied to.
/// False, and nothing done, where its weights or bias are no float32 constants, or it has other channels, a bias that is
/// not one number for each, or a clamp, or where the products are beyond float32.
bool fold_into(Graph &g, Node &linear, const Affine &a);

}  // namespace qtn::graph
