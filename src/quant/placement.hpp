// SPDX-License-Identifier: Apache-2.0
// The rule for which values of a float graph become integers. docs/quantization.md says it in words.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.hpp"
#include "quant/classify.hpp"
#include "quant/config.hpp"

namespace qtn::quant {

struct NodePlan {
  Role role = Role::floating;
  std::string why;                   ///< it is that; see Classified
  bool integer = false;              ///< reads its activations as integers
  Mode mode = Mode::fixed;           ///< another one, if it is a layer that is quantized so
  std::optional<Settings> settings;  ///< nullopt: configured to stay in float
};

/// Values that share one grid.
struct Group {
  std::vector<graph::ValueId> members;    ///< activations, ascending
  std::vector<graph::ValueId> sources;    ///< those observed: the rest are made by moving these
  std::vector<graph::ValueId> constants;  ///< constants moved among them (Concat with a constant)
  Settings settings;
  QuantizerPtr fixed;  ///< known beforehand (given, or of Sigmoid under "fbgemm"); then not observed
};

struct Placement {
  std::vector<NodePlan> nodes;      ///< by node index
  std::vector<std::int32_t> group;  ///< by value id; -1: float
  std::vector<Group> groups;
};

/// `trained`: whatever a Concat joins is on the grid of its result, as in the frameworks that train networks.
Placement place(const graph::Graph &g, const Config &config, bool trained = false);

/// Whether node n is a Concat of integers, whose operands may have grids of their own.
bool joins(const Placement &placement, const graph::Node &node, std::size_t n);

/// Operands of a moving op that hold the data moved: every input of Concat, input 0 of Reshape.
bool moves_operand(const graph::Node &node, std::size_t input);

}  // namespace qtn::quant
