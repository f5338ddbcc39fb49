// SPDX-License-Identifier: Apache-2.0
#include "graph/edges.hpp"

#include <algorithm>
#include <map>

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

void extend_grids(Graph &g, std::optional<Numerics> given) {
  const auto on_grid = std::ranges::find_if(g.values, [](const Value &v) { return v.quantizer != nullptr; });
  const bool has_grids = on_grid != g.values.end();
  const Numerics numerics = given.value_or(has_grids ? on_grid->quantizer->numerics() : Numerics::onnx);
  const Uses uses(g);
  const auto at = [](ValueId v) { return static_cast<std::size_t>(v); };
  const auto is_free = [&](ValueId v) {
    const Value &value = g.value(v);
    return !value.is_constant() && !value.quantizer && value.dtype.value_or(QTN_FLOAT32) == QTN_FLOAT32;
  };
  std::map<ValueId, QuantizerPtr> taken, stored;  // what is made of integers, and what becomes integers
  std::vector<bool> seen(g.values.size(), false);
  for (const Node &node : g.nodes) {
    const QuantizerPtr q = constant_grid(g, node, numerics);
    if (!q) continue;
    if (node.op->coding == ops::Coding::to_reals) {
      if (is_free(node.outputs[0])) taken.emplace(node.outputs[0], q);
      continue;
    }
    const ValueId x = node.inputs[0];
    if (seen[at(x)] || taken.contains(x)) continue;  // all of its readers have been looked at
    seen[at(x)] = true;
    const auto stores_so = [&](std::int32_t reader) {
      const Node &other = g.nodes[at(reader)];
      const QuantizerPtr grid =
          other.op->coding == ops::Coding::to_integers ? constant_grid(g, other, numerics) : nullptr;
      return grid && *grid == *q;
    };
    if (is_free(x) && uses.producer[at(x)] >= 0 && !uses.is_output[at(x)] &&
        std::ranges::all_of(uses.consumers[at(x)], stores_so))
      stored.emplace(x, q);
  }
  if (!has_grids && (taken.empty() || stored.empty())) return;
  for (const auto *values : {&taken, &stored})
    for (const auto &[v, q] : *values) {
      g.value(v).quantizer = q;
      g.value(v).dtype = QTN_FLOAT32;
    }
}

}  // namespace qtn::graph
