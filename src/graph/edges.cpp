// SPDX-License-Identifier: Apache-2.0
#include "graph/edges.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "ops/common/linear_grid.hpp"

namespace qtn::graph {
namespace {

constexpr float kLargeScale = 1e30f;

/// Far from where products of scales and integers overflow, or have fewer digits than floats.
bool is_exact(float scale) { return scale > 1e-30f && scale < kLargeScale; }

}  // namespace

bool are_moderate(const Tensor &scales) {
  return std::ranges::all_of(float_values(scales, "scale"), [](float s) { return s < kLargeScale; });
}

QuantizerPtr constant_grid(const Graph &g, const Node &node, Numerics numerics) {
  if (node.op->coding == ops::Coding::none) return nullptr;
  const bool stores = node.op->coding == ops::Coding::to_integers;
  const auto constant = [&](std::size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNoValue ? &g.value(node.inputs[i]).constant : nullptr;
  };
  const Tensor *scale = constant(1), *zero = constant(2);
  if (!scale || !scale->has_data() || (zero && (!zero->has_data() || zero->quantized()))) return nullptr;
  if (scale->quantized() || scale->dtype() != QTN_FLOAT32 || scale->count() != 1) return nullptr;
  const std::optional<qdtype> &stored = g.value(stores ? node.outputs[0] : node.inputs[0]).dtype;
  if (!zero && !stored) return nullptr;
  const qdtype dtype = zero ? zero->dtype() : *stored;
  if ((dtype != QTN_UINT8 && dtype != QTN_INT8) || node.attrs.get_int("block_size", 0) != 0) return nullptr;
  if (!is_exact(float_values(*scale, "scale")[0])) return nullptr;
  try {
    return ops::linear_quantizer(node.op->name, node.attrs, Shape{}, *scale, zero, dtype, numerics);
  } catch (const Error &) {
    return nullptr;
  }
}

bool passes_integers(const Graph &g, const Node &node) {
  if (node.op->coding == ops::Coding::none) return false;
  const bool stores = node.op->coding == ops::Coding::to_integers;
  const QuantizerPtr &q = g.value(stores ? node.inputs[0] : node.outputs[0]).quantizer;
  if (node.clamp || !is_8bit_activation(q)) return false;
  const QuantizerPtr own = constant_grid(g, node, q->numerics());
  return own && *own == *q;
}

}  // namespace qtn::graph
