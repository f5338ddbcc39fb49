// SPDX-License-Identifier: Apache-2.0
// Passes that let one node do the work of two.
#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "base/error.hpp"
#include "graph/channel_constants.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

/// [begin, end) in ONNX's order, by axis, of a Pad with constants that adds places with this number to spatial axes and
/// nothing else.
std::optional<std::vector<std::int64_t>> pads_of(const Graph &g, const Node &node, float number) {
  if (std::string_view(node.op->name) != "Pad" || node.attrs.get_string("mode", "constant") != "constant")
    return std::nullopt;
  const auto constant = [&](std::size_t i) -> const Tensor * {
    return i < node.inputs.size() && node.inputs[i] != kNoValue ? &g.value(node.inputs[i]).constant : nullptr;
  };
  const Tensor *pads = constant(1), *value = constant(2);
  if (!pads || !pads->has_data() || constant(3)) return std::nullopt;
  if (value && !(value->has_data() && value->dtype() == QTN_FLOAT32 && value->count() == 1)) return std::nullopt;
  if ((value ? *value->as<const float>() : 0.0f) != number) return std::nullopt;
  std::vector<std::int64_t> counts = int_values(*pads, "Pad");
  if (counts.size() < 6 || counts.size() % 2 != 0) return std::nullopt;
  const std::size_t rank = counts.size() / 2;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0 || (i % rank < 2 && counts[i] != 0)) return std::nullopt;
  return counts;
}

/// What the pads of a node are to it: zeros to a Conv, and to a MaxPool less than any number.
std::optional<float> number_of_own_pads(const Node &node) {
  if (node.attrs.get_string("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  if (std::string_view(node.op->name) == "Conv") return 0.0f;
  const bool whole = node.op == &ops::kMaxPool && node.outputs.size() == 1 && node.attrs.get_int("ceil_mode", 0) == 0;
  return whole ? std::optional(-std::numeric_limits<float>::infinity()) : std::nullopt;
}

/// A window of a MaxPool that lies in its pads alone has no maximum; ONNX Runtime refuses such pads.
bool may_have_pads(const Node &node, std::span<const std::int64_t> pads) {
  if (node.op != &ops::kMaxPool) return true;
  const std::vector<std::int64_t> kernel = node.attrs.get_ints("kernel_shape"),
                                  steps = node.attrs.get_ints("dilations");
  if (2 * kernel.size() != pads.size() || std::ranges::any_of(steps, [](std::int64_t d) { return d != 1; }))
    return false;
  for (std::size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= kernel[i % kernel.size()]) return false;
  return true;
}

bool same_grid(const Value &a, const Value &b) {
  return a.quantizer ? b.quantizer && *a.quantizer == *b.quantizer : !b.quantizer;
}

/// Only operators on integers have an epilogue to put a clamp in.
bool takes_clamp(const Node &node) {
  return (node.op->run_quantized || is_dynamic_product(node)) && node.outputs.size() == 1;
}

bool is_batch_norm(const Node &node) {
  return std::string_view(node.op->name) == "BatchNormalization" && node.outputs.size() == 1;
}

}  // namespace

std::optional<ops::Clamp> clamp_of(const Graph &g, const Node &node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string_view name = node.op->name;
  if (name == "Relu") return ops::Clamp{0.0f, kInfinity};
  if (name != "Clip") return std::nullopt;
  ops::Clamp clamp{-kInfinity, kInfinity};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Tensor &bound = g.value(node.inputs[i]).constant;
    if (!bound.has_data() || bound.dtype() != QTN_FLOAT32 || bound.count() != 1) return std::nullopt;
    (i == 1 ? clamp.lo : clamp.hi) = *bound.as<const float>();
  }
  if (!(clamp.lo <= clamp.hi)) return std::nullopt;
  return clamp;
}

namespace {

std::int64_t channels_of(const Graph &g, const Node &product) {
  return g.value(product.inputs[1]).constant.dim(output_channel_axis(product));
}

}  // namespace

void fuse_biases(Graph &g) {
  const Uses uses(g);
  std::vector<bool> gone(g.nodes.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &add = g.nodes[n];
    if (add.op != &ops::kAdd) continue;
    for (const std::size_t i : {0, 1}) {
      const ValueId x = add.inputs[i], bias = add.inputs[1 - i];
      const std::int32_t maker = uses.producer[static_cast<std::size_t>(x)];
      if (maker < 0 || !uses.single_use(x) || g.value(x).quantizer) continue;
      Node &before = g.nodes[static_cast<std::size_t>(maker)];
      if (!is_dynamic_product(before) || before.inputs.size() > 4 || before.clamp || g.value(bias).quantizer) continue;
      const ValueId fitting = operand_of_channels(g, before, bias);
      if (fitting == kNoValue) continue;
      const Tensor &row = g.value(fitting).constant;
      if (row.dtype() != QTN_FLOAT32 || row.shape() != Shape{channels_of(g, before)}) continue;
      before.inputs.resize(4, kNoValue);
      before.inputs.push_back(fitting);
      before.outputs = add.outputs;
      before.clamp = add.clamp;
      gone[n] = true;
      break;
    }
  }
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return gone[n++]; });
  sort_topologically(g);
  remove_dead(g);
}

namespace {

/// `takes`: whether the first node may get the clamp that the second one is.
template <typename Takes>
void move_clamps(Graph &g, Takes takes) {
  const Uses uses(g);
  std::vector<std::size_t> part_of(g.nodes.size());  // the node that a node became a part of, or itself
  std::iota(part_of.begin(), part_of.end(), std::size_t{0});
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    const std::optional<ops::Clamp> clamp = clamp_of(g, node);
    if (!clamp || node.clamp) continue;
    const ValueId x = node.inputs[0];
    const std::int32_t maker = uses.producer[static_cast<std::size_t>(x)];
    if (maker < 0 || !uses.single_use(x) || g.value(x).quantizer) continue;
    const std::size_t whole = part_of[static_cast<std::size_t>(maker)];
    Node &before = g.nodes[whole];
    if (!takes(before, node) || before.outputs[0] != x) continue;
    const ops::Clamp first = before.clamp.value_or(*clamp);
    if (first.lo > clamp->hi || clamp->lo > first.hi) continue;
    before.clamp = ops::Clamp{std::max(first.lo, clamp->lo), std::min(first.hi, clamp->hi)};
    before.outputs[0] = node.outputs[0];
    part_of[n] = whole;
  }
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) {
    const std::size_t i = n++;
    return part_of[i] != i;
  });
  sort_topologically(g);
  remove_dead(g);
}

}  // namespace

void fuse_clamps(Graph &g) {
  move_clamps(g, [](const Node &before, const Node &) { return takes_clamp(before); });
}

void fuse_clamps(Graph &g, const NodeFilter &only) {
  move_clamps(g, [&](const Node &before, const Node &node) {
    return only(before) && only(node) && (takes_clamp(before) || is_batch_norm(before));
  });
}

void replace_relu6(Graph &g, const NodeFilter &where) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto is_relu6 = [](const std::optional<ops::Clamp> &clamp) {
    return clamp && clamp->lo == 0.0f && clamp->hi == 6.0f;
  };
  for (Node &node : g.nodes) {
    if (!where(node)) continue;
    if (is_relu6(node.clamp)) node.clamp->hi = kInfinity;
    if (!is_relu6(clamp_of(g, node))) continue;
    node.op = ops::find_op("Relu");
    node.inputs.resize(1);
  }
  remove_dead(g);
}

void fuse_pads(Graph &g) {
  const Uses uses(g);
  for (Node &node : g.nodes) {
    const std::optional<float> number = number_of_own_pads(node);
    const std::int32_t maker = number ? uses.producer[static_cast<std::size_t>(node.inputs[0])] : -1;
    if (maker < 0) continue;
    const Node &pad = g.nodes[static_cast<std::size_t>(maker)];
    const auto counts = pads_of(g, pad, *number);
    if (!counts || !same_grid(g.value(pad.inputs[0]), g.value(pad.outputs[0]))) continue;
    const std::size_t rank = counts->size() / 2, spatial = rank - 2;
    std::vector<std::int64_t> pads = node.attrs.get_ints("pads");
    if (pads.empty()) pads.resize(2 * spatial, 0);
    if (pads.size() != 2 * spatial) continue;
    bool fit = true;
    const auto add = [&](std::int64_t &to, std::int64_t more) { fit = !__builtin_add_overflow(to, more, &to) && fit; };
    for (std::size_t i = 0; i < spatial; ++i) {
      add(pads[i], (*counts)[2 + i]);
      add(pads[spatial + i], (*counts)[rank + 2 + i]);
    }
    if (!fit || !may_have_pads(node, pads)) continue;
    node.attrs.set("pads", pads);
    node.inputs[0] = pad.inputs[0];
  }
  remove_dead(g);
}

}  // namespace qtn::graph
