// SPDX-License-Identifier: Apache-2.0
#include "quant/stored_weights.hpp"

#include <algorithm>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/tensors.hpp"
#include "quant/classify.hpp"
#include "quant/recurrent.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

using graph::ValueId;

/// Weights alone are stored where kernels take them: layers with fewer bits stay as they are.
bool stores_recurrent(const graph::Graph &g, const graph::Node &node, const Settings &settings) {
  const bool bytes = settings.weight.get_string("dtype", "") == "int8";
  return is_recurrent(g, node) && (bytes || settings.mode != Mode::weights_only);
}

}  // namespace

bool StoredWeights::quantize_table(graph::Node &node, const Settings &settings) {
  if (is_embedding(g_, node)) {
    embeddings_.quantize(node, settings, who_);
    return true;
  }
  if (!stores_recurrent(g_, node, settings)) return false;
  quantize_recurrent(g_, node, settings, who_);
  return true;
}

void StoredWeights::quantize_product(graph::Node &node, const Settings &settings) {
  const ValueId original = node.inputs[1];
  const Tensor q = quantize_weight_of(g_, node, nullptr, 1.0, settings, who_);
  std::vector<ValueId> &made = made_[{original, graph::output_channel_axis(node)}];
  const auto known = std::ranges::find_if(made, [&](ValueId v) { return *g_.value(v).quantizer == *q.quantizer(); });
  if (known == made.end()) {
    const std::string name = graph::original_name(g_.value(original));
    made.push_back(g_.add_constant(name + "_quantized", q));
    node.inputs[1] = made.back();
  } else {
    node.inputs[1] = *known;
  }
}

bool has_table(const graph::Graph &g, const graph::Node &node, const Settings &settings) {
  return is_embedding(g, node) || stores_recurrent(g, node, settings);
}

bool has_stored_weights(const graph::Graph &g, const graph::Node &node) {
  const Tensor *weight = product_weight(g, node);
  return weight && !node.op->product->channel_groups && !graph::float_constant(g, input_of(node, 0));
}

void remove_blocks(Settings &settings) {
  settings.weight.erase("block_size");
  settings.weight.set("scheme", "per_channel_symmetric");
}

Settings with_fitting_blocks(const graph::Graph &g, const graph::Node &node, Settings settings) {
  if (!settings.weight.has("block_size")) return settings;
  const std::int64_t block = settings.weight.get_int("block_size", 0);
  std::int64_t divided = 0;
  if (is_embedding(g, node))
    divided = g.value(node.inputs[0]).constant.dim(1);
  else if (has_stored_weights(g, node))
    divided = g.value(node.inputs[1]).constant.dim(1 - graph::output_channel_axis(node));
  if (divided < block) remove_blocks(settings);
  return settings;
}

}  // namespace qtn::quant
