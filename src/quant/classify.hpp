// SPDX-License-Identifier: Apache-2.0
// What a node of a float graph can do with integers, and if nothing, why not.
#pragma once

#include <cstdint>
#include <string>

#include "graph/facts.hpp"
#include "graph/graph.hpp"

namespace qtn::quant {

/// What an operator can do with integers, given its attributes and constants.
enum class Role {
  floating,   ///< runs in float
  weighted,   ///< products by constant weights: integers in, integers or float out
  pointwise,  ///< sums, products of activations, means, tables: integers in and out, or float altogether
  moving,     ///< moves or chooses integers: one grid for what goes in and out
};

struct Classified {
  Role role = Role::floating;
  std::string why;  ///< of Role::floating, as the report says it: "Conv with weights of 2 dimensions"
};

Classified classify(const graph::Graph &g, const graph::Facts &facts, const graph::Node &node);

/// Whether a mean over places, whose result may keep the grid of what it reads.
bool is_mean_of_places(const graph::Graph &g, const graph::Facts &facts, const graph::Node &node);

/// Whether a product of two activations, which is integers only where its result has a grid by hand: eight bits of
/// both operands are more than many networks stand.
bool multiplies_activations(const graph::Graph &g, const graph::Facts &facts, const graph::Node &node);

/// The float weights of a linear node, of as many dimensions as it needs; nullptr where it has none.
const Tensor *product_weight(const graph::Graph &g, const graph::Node &node);

/// Why a linear node is not the products of a float activation by constant weights and a constant bias, of at most
/// `depth` products an output; empty where it is.
std::string product_misfit(const graph::Graph &g, const graph::Facts &facts, const graph::Node &node,
                           std::int64_t depth);

}  // namespace qtn::quant
