// SPDX-License-Identifier: Apache-2.0
// Rewrites of a float graph that keep its meaning. Each leaves the graph sorted; optimize() runs them all.
#pragma once

#include "graph/graph.hpp"

namespace qtn::graph {

/// Replaces nodes whose inputs are all constants by their results.
void fold_constants(Graph &g);

/// Identity and Dropout: readers take the input instead.
void remove_identities(Graph &g);

/// Folds BatchNormalization into the Conv or Gemm before it (semantics: W' = W*gamma*r, b' =
/// (b-mean)*gamma*r
/// + beta, r = 1/sqrt(var + eps)); one that stands alone becomes a multiplication and an addition of constants.
void fold_batch_norms(Graph &g);

/// Moves a Pad with zeros along spatial axes into the pads of a Conv that reads it.
void fuse_pads(Graph &g);

/// Moves Relu and Clip with constant bounds into the clamp of the Conv, Gemm, MatMul or Add before it.
void fuse_clamps(Graph &g);

/// Where only a node that moves elements reads a value, and its results have a grid of eight bits, the value gets that
/// grid: rounding is monotonic and elements stay what they are, so that results do not change.
void round_before_moves(Graph &g);

/// Gives products of 8-bit activations constant int8 weights around 0 in place of weights of other types or with zero
/// points. Those that leave int8 then become sums of several, for which x is read as often.
void center_weights(Graph &g);

void optimize(Graph &g);

}  // namespace qtn::graph
