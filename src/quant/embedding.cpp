// SPDX-License-Identifier: Apache-2.0
#include "quant/embedding.hpp"

#include "base/error.hpp"
#include "graph/facts.hpp"
#include "graph/tensors.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

constexpr std::int64_t kLeastColumns = 8, kLeastElements = 1024;  // below, scales and integers save next to nothing

}  // namespace

bool is_embedding(const graph::Graph &g, const graph::Node &node) {
  if (node.op != &ops::kGather || node.clamp) return false;
  const Tensor *table = graph::float_constant(g, node.inputs[0]);
  if (!table || table->rank() != 2 || table->dim(1) < kLeastColumns || table->count() < kLeastElements) return false;
  const std::int64_t axis = node.attrs.get_int("axis", 0);
  return axis == 0 || axis == -2;
}

void Embeddings::quantize(graph::Node &node, const Settings &settings, const char *who) {
  const graph::ValueId original = node.inputs[0];
  const graph::Value &value = g_.value(original);
  const auto [known, is_new] = made_.try_emplace(original);
  if (is_new) try {
      const std::int64_t axis = settings.weight.has("block_size") ? 1 : 0;
      const Tensor q = quantize_weight_along(value.constant.to_contiguous(), axis, settings);
      known->second = g_.add_constant(graph::original_name(value) + "_quantized", q);
    } catch (const Error &e) {
      made_.erase(original);
      fail(e.status(), who, ": table \"", value.name, "\" of node \"", node.name, "\": ", e.what());
    }
  node.inputs[0] = known->second;
}

}  // namespace qtn::quant
