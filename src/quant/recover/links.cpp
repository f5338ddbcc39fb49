// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/links.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/open_inputs.hpp"
#include "quant/recover/layer.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool homogeneous_clamp(const Node &node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return !node.clamp || ((node.clamp->lo == 0 || node.clamp->lo == -kInfinity) && node.clamp->hi == kInfinity);
}

std::optional<Layer> layer_at(const Graph &g, const Node &node) {
  const Tensor *weight = float_constant(g, input_of(node, 1));
  if (!weight || weight->rank() < 2) return std::nullopt;
  return layer_of(node, weight->shape());
}

bool is_of_shape(const Tensor *t, const Shape &shape) { return t && t->shape() == shape; }

/// How many channels a node makes that can be scaled one by one; 0: none.
std::int64_t scalable_channels(const Graph &g, const Node &node) {
  if (!homogeneous_clamp(node)) return 0;
  if (node.op == &ops::kLayerNormalization) {
    const Tensor *scale = float_constant(g, input_of(node, 1));
    const ValueId bias = input_of(node, 2);
    const bool plain = scale && scale->rank() == 1 && node.outputs.size() == 1 && !node.clamp &&
                       (bias == kNoValue || is_of_shape(float_constant(g, bias), scale->shape()));
    return plain ? scale->count() : 0;
  }
  const auto layer = layer_at(g, node);
  return layer && adds_to_channels(g, node, *layer) ? layer->channels() : 0;
}

/// Which channel of the link the weight (channel, i) of the reader reads.
std::int64_t channel_read(const Layer &reader, std::int64_t channels, std::int64_t channel, std::int64_t i) {
  const std::int64_t of_group = channels / reader.groups;
  return channel / reader.outputs * of_group + i / (reader.depth / of_group);
}

/// Shapes of values under two lengths of all that the inputs leave open: what holds under both is no chance.
class TrialShapes {
 public:
  explicit TrialShapes(const Graph &g) {
    for (const std::int64_t length : {224, 448}) {  // which networks with strides divide
      trials_.push_back(types_at(g, length));
      if (!graph::has_open_dimension(g)) return;
    }
  }

  /// Whether `after` has a row for each image of `before`, which has so many channels.
  bool flattens(ValueId before, ValueId after, std::int64_t channels) const {
    return std::ranges::all_of(trials_, [&](const Types &types) {
      if (types.empty()) return false;
      const auto &x = types[static_cast<std::size_t>(before)], &y = types[static_cast<std::size_t>(after)];
      return x && y && x->shape.size() >= 2 && x->shape[1] == channels && y->shape.size() == 2 &&
             y->shape[0] == x->shape[0];
    });
  }

 private:
  using Types = std::vector<std::optional<ops::TensorType>>;

  /// Empty where the number of dimensions is open too, or the graph takes no such lengths.
  static Types types_at(const Graph &g, std::int64_t length) {
    const auto inputs = graph::trial_input_types(g, length);
    if (!inputs) return {};
    try {
      return infer_partly(g, *inputs, {}, graph::Misfit::stops).types;
    } catch (const Error &) {
      return {};
    }
  }

  std::vector<Types> trials_;
};

/// From a reader back to the node whose channels it may read.
struct Way {
  std::size_t maker;
  bool elementwise = true;                ///< no pool on it
  std::optional<ValueId> flattened = {};  ///< what the first node on it that changes the shape reads
};

std::optional<Way> way_back(const Graph &g, const graph::Uses &uses, ValueId x) {
  Way way{};
  while (uses.single_use(x)) {
    const std::int32_t maker = uses.producer[static_cast<std::size_t>(x)];
    if (maker < 0) return std::nullopt;
    const Node &node = g.nodes[static_cast<std::size_t>(maker)];
    way.maker = static_cast<std::size_t>(maker);
    if ((!node.op->homogeneous && !node.op->keeps_order) || !homogeneous_clamp(node)) return way;
    if (node.op->keeps_order) {
      if (!way.elementwise) return std::nullopt;  // a pool over what may be no places of one channel
      way.flattened = node.inputs[0];
    }
    way.elementwise = way.elementwise && (node.op->elementwise || node.op->keeps_order);
    x = node.inputs[0];
  }
  return std::nullopt;
}

/// Whether what the reader reads along its depth are the channels of the maker: axis 1 of a convolution, the last axis
/// of others.
bool reads_channels(const Graph &g, const TrialShapes &shapes, const Way &way, const Node &to, const Layer &reader,
                    std::int64_t channels) {
  const bool over_places = graph::is_convolution(g.nodes[way.maker]);
  const std::int64_t inputs = reader.groups * reader.depth;
  if (reader.convolution) {
    const Shape &weight = g.value(to.inputs[1]).constant.shape();
    return over_places && !way.flattened && inputs == channels * element_count(weight, 2, weight.size());
  }
  if (!over_places) return way.elementwise && inputs == channels;
  return way.flattened && inputs % channels == 0 && shapes.flattens(*way.flattened, to.inputs[0], channels);
}

/// A copy of a constant for one node alone, since others may read the old one.
void own(Graph &g, std::size_t node, std::size_t input) {
  const ValueId old = g.nodes[node].inputs[input];
  const std::string name = g.value(old).name;
  const ValueId made = g.add_constant(name + "_equalized", g.value(old).constant.clone());
  g.nodes[node].inputs[input] = made;
}

}  // namespace

std::vector<Link> find_links(const Graph &g) {
  const graph::Uses uses(g);
  const TrialShapes shapes(g);
  std::vector<Link> links;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const auto reader = layer_at(g, g.nodes[n]);
    if (!reader) continue;
    const std::optional<Way> way = way_back(g, uses, g.nodes[n].inputs[0]);
    if (!way) continue;
    const Node &from = g.nodes[way->maker];
    const std::int64_t channels = scalable_channels(g, from);
    if (channels == 0 || channels % reader->groups != 0) continue;
    if (reads_channels(g, shapes, *way, g.nodes[n], *reader, channels)) links.push_back({way->maker, n, channels});
  }
  return links;
}

bool has_biases(const Graph &g, const Link &link) {
  return std::ranges::all_of(std::array{link.from, link.to}, [&](std::size_t n) {
    const Node &node = g.nodes[n];
    const auto layer = layer_at(g, node);
    return layer && input_of(node, 2) != kNoValue && adds_to_channels(g, node, *layer);
  });
}

void own_constants(Graph &g, std::span<const Link> links) {
  std::set<std::size_t> nodes;
  for (const Link &link : links) nodes.insert({link.from, link.to});
  for (const std::size_t n : nodes)
    for (const std::size_t input : {1, 2}) own(g, n, input);
}

void move_offsets(Graph &g, const Link &link, std::span<const float> offsets) {
  const Layer reader = *layer_at(g, g.nodes[link.to]);
  const Tensor weight = g.value(g.nodes[link.to].inputs[1]).constant.to_contiguous();
  auto *made = g.value(g.nodes[link.from].inputs[2]).constant.as<float>();
  auto *read = g.value(g.nodes[link.to].inputs[2]).constant.as<float>();
  for (std::int64_t c = 0; c < link.channels; ++c) made[c] -= offsets[static_cast<std::size_t>(c)];
  for (std::int64_t c = 0; c < reader.channels(); ++c)
    for (std::int64_t i = 0; i < reader.depth; ++i)
      read[c] += weight.as<const float>()[weight_index(reader, c, i)] *
                 offsets[static_cast<std::size_t>(channel_read(reader, link.channels, c, i))];
}

}  // namespace qtn::quant
