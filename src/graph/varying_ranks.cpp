// SPDX-License-Identifier: Apache-2.0
#include "graph/varying_ranks.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/open_inputs.hpp"

namespace qtn::graph {
namespace {

/// How much of a shape is the same in every run.
enum class Lasting { shape, rank, nothing };

struct Known {
  Lasting lasting = Lasting::shape;
  bool fixed = true;  ///< elements follow from no open input
};

/// Whether the length of a list says the rank of the result.
bool list_says_rank(const Node &node) {
  constexpr std::array<std::string_view, 5> kNames = {"Reshape", "Expand", "ConstantOfShape", "Squeeze", "Unsqueeze"};
  const std::string_view op = node.op->name;
  return std::ranges::find(kNames, op) != kNames.end() || op.starts_with("Reduce");
}

/// What holds for the results of the node.
Lasting lasting_of(const Node &node, const std::vector<Known> &known) {
  const auto of = [&](std::size_t i) {
    const ValueId v = input_of(node, i);
    return v == kNoValue ? Known{} : known[static_cast<std::size_t>(v)];
  };
  Lasting lasting = Lasting::shape;
  bool longer_list = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    lasting = std::max(lasting, of(i).lasting);
    if (!node.op->shapes_from.holds(i)) continue;
    if (!of(i).fixed) lasting = std::max(lasting, Lasting::rank);
    longer_list = longer_list || of(i).lasting != Lasting::shape;
  }
  if (!node.bodies.empty()) return Lasting::rank;  // which only the file says
  if (node.op->reads_shapes) return lasting == Lasting::nothing ? Lasting::rank : Lasting::shape;
  if (is_convolution(node) || node.op == &ops::kFlatten) return Lasting::rank;
  if (list_says_rank(node) && longer_list) return Lasting::nothing;
  if (node.op == &ops::kReshape) return std::min(lasting, Lasting::rank);
  const bool drops_ones = node.op == &ops::kSqueeze && input_of(node, 1) == kNoValue;
  const bool indices_say_rank = node.op == &ops::kGatherND && of(1).lasting != Lasting::shape;
  return (drops_ones && lasting != Lasting::shape) || indices_say_rank ? Lasting::nothing : lasting;
}

}  // namespace

std::vector<bool> varying_ranks(const Graph &g) {
  std::vector<Known> known(g.values.size());
  for (const ValueId v : g.inputs)
    if (is_open(g.value(v))) known[static_cast<std::size_t>(v)] = {Lasting::rank, false};
  for (const Node &node : g.nodes) {
    const bool fixed = std::ranges::all_of(
        node.inputs, [&](ValueId v) { return v == kNoValue || known[static_cast<std::size_t>(v)].fixed; });
    if (fixed) continue;
    const Lasting lasting = lasting_of(node, known);
    for (const ValueId v : node.outputs)
      if (v != kNoValue) known[static_cast<std::size_t>(v)] = {lasting, false};
  }
  std::vector<bool> varying;
  for (const Known &value : known) varying.push_back(value.lasting == Lasting::nothing);
  return varying;
}

}  // namespace qtn::graph
