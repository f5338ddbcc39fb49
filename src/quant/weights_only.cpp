// SPDX-License-Identifier: Apache-2.0
#include "quant/weights_only.hpp"

#include "graph/edges.hpp"
#include "graph/facts.hpp"
#include "graph/pipelines.hpp"
#include "quant/stored_weights.hpp"

namespace qtn::quant {
namespace {

Settings settings_of(const WeightsOnly &grid) {
  Settings settings;
  settings.mode = Mode::weights_only;
  settings.weight_observer = "minmax";
  settings.weight.set("numerics", "onnx");
  settings.weight.set("narrow_range", std::int64_t{1});
  settings.weight.set("dtype", dtype_name(grid.dtype));
  settings.weight.set("scheme", grid.block_size > 0 ? "per_block_symmetric" : "per_channel_symmetric");
  if (grid.block_size > 0) settings.weight.set("block_size", grid.block_size);
  return settings;
}

}  // namespace

graph::Graph quantize_weights(const graph::Graph &float_graph, const WeightsOnly &grid) {
  graph::require_float(float_graph, "weights");
  graph::Graph g = float_graph;
  graph::run_passes(g, graph::Pipeline::simplification);
  const Settings settings = settings_of(grid);
  StoredWeights stored(g, "weights");
  for (graph::Node &node : g.nodes) {
    const Settings fitting = with_fitting_blocks(g, node, settings);
    if (!stored.quantize_table(node, fitting) && has_stored_weights(g, node)) stored.quantize_product(node, fitting);
  }
  graph::remove_dead(g);
  graph::extend_grids(g);
  return g;
}

}  // namespace qtn::quant
