// SPDX-License-Identifier: Apache-2.0
#include "quant/weights_only.hpp"

#include <map>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/pipelines.hpp"
#include "graph/tensors.hpp"
#include "quant/classify.hpp"
#include "quant/embedding.hpp"
#include "quant/recurrent.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool has_weights(const Graph &g, const Node &node) {
  const Tensor *weight = product_weight(g, node);
  return weight && !node.op->product->channel_groups && !float_constant(g, input_of(node, 0));
}

Settings settings_of(const WeightsOnly &grid, bool blocks) {
  Settings settings;
  settings.weight_observer = "minmax";
  settings.weight.set("numerics", "onnx");
  settings.weight.set("narrow_range", std::int64_t{1});
  settings.weight.set("dtype", dtype_name(grid.dtype));
  settings.weight.set("scheme", blocks ? "per_block_symmetric" : "per_channel_symmetric");
  if (blocks) settings.weight.set("block_size", grid.block_size);
  return settings;
}

}  // namespace

Graph quantize_weights(const Graph &float_graph, const WeightsOnly &grid) {
  graph::require_float(float_graph, "weights");
  Graph g = float_graph;
  graph::run_passes(g, graph::Pipeline::simplification);
  // One copy for all nodes that read the same weights with the same axis for channels.
  std::map<std::pair<ValueId, std::size_t>, ValueId> made;
  Embeddings embeddings(g);
  for (Node &node : g.nodes) {
    if (is_embedding(g, node)) {
      const bool blocks = grid.block_size > 0 && g.value(node.inputs[0]).constant.dim(1) >= grid.block_size;
      embeddings.quantize(node, settings_of(grid, blocks), "weights");
    }
    if (grid.dtype == QTN_INT8 && is_recurrent(g, node))
      quantize_recurrent(g, node, settings_of(grid, false), "weights");
    if (!has_weights(g, node)) continue;
    const ValueId original = node.inputs[1];
    const std::size_t channels = graph::output_channel_axis(node);
    const auto [known, is_new] = made.try_emplace({original, channels});
    if (is_new) {
      const bool blocks = grid.block_size > 0 && g.value(original).constant.dim(1 - channels) >= grid.block_size;
      const Tensor q = quantize_weight_of(g, node, nullptr, 1.0, settings_of(grid, blocks), "weights");
      const std::string name = graph::original_name(g.value(original));
      known->second = g.add_constant(name + "_quantized", q);
    }
    node.inputs[1] = known->second;
  }
  graph::remove_dead(g);
  return g;
}

}  // namespace qtn::quant
