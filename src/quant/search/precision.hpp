// SPDX-License-Identifier: Apache-2.0
// The fewest layers that have to fall back so that the rest may have activations of 8 bits.
#pragma once

#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"
#include "quant/search/fallback.hpp"
#include "quant/search/targets.hpp"

namespace qtn::quant {

struct FallenLayer {
  std::string node;
  double alone_db;  ///< the outputs' SQNR where only this node is quantized, or in large networks those tried with it
};

/// Ranks the nodes by what they cost alone on what the goal measures, for the work that they do in 8 bits, takes the
/// shortest run of the worst with which the goal is reached, and gives back those that turn out not to be needed. Where even all do not reach it, it is all. In
/// networks of many nodes neighbours are ranked together, so that the number of networks that are run has a bound.
/// `prepared` (calibrated) becomes what `fall_back` makes of it. The nodes that cost most first.
std::vector<FallenLayer> reach(PreparedModel &prepared, const Goal &goal, const FallBack &fall_back,
                               const Progress &progress);

}  // namespace qtn::quant
