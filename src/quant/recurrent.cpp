// SPDX-License-Identifier: Apache-2.0
#include "quant/recurrent.hpp"

#include "base/error.hpp"
#include "graph/tensors.hpp"
#include "ops/common/recurrent_op.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

constexpr std::size_t kWeights[] = {1, 2};

}  // namespace

bool is_recurrent(const graph::Graph &g, const graph::Node &node) {
  if (!ops::is_recurrent(*node.op)) return false;
  for (const std::size_t i : kWeights) {
    const graph::Value &value = g.value(node.inputs[i]);
    if (!value.is_constant() || value.constant.dtype() != QTN_FLOAT32 || value.constant.rank() != 3) return false;
    if (value.constant.count() == 0) return false;
  }
  return true;
}

void quantize_recurrent(graph::Graph &g, graph::Node &node, const Settings &settings, const char *who) {
  constexpr std::int64_t kRows = 1;  // [directions][rows of the gates][depth]
  for (const std::size_t i : kWeights) {
    const graph::Value &value = g.value(node.inputs[i]);
    try {
      if (settings.weight.has("block_size"))
        fail(QTN_EUNSUPPORTED, "recurrent layers have weights per tensor or channel, not in blocks");
      const Tensor q = quantize_weight_along(value.constant.to_contiguous(), kRows, settings);
      node.inputs[i] = g.add_constant(graph::original_name(value) + "_quantized", q);
    } catch (const Error &e) {
      fail(e.status(), who, ": weight \"", value.name, "\" of node \"", node.name, "\": ", e.what());
    }
  }
}

}  // namespace qtn::quant
