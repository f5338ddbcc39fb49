// SPDX-License-Identifier: Apache-2.0
// Weights as products take them: int8 around 0, or of fewer bits. Files have them in other types too, with zero points.
#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

/// Scaled as a whole or by output channel, in at most eight bits, and not what kernels take as it is.
bool is_to_change(const Node &node, const Value &w) {
  if (!w.is_constant() || !w.quantizer || w.quantizer->per_block()) return false;
  const Quantizer &q = *w.quantizer;
  if (is_tiny_float(q.dtype()) || dtype_bits(q.dtype()) > 8 || w.constant.rank() < 2) return false;
  if (is_convolution(node)) {  // shapes are not inferred yet
    const std::int64_t groups = node.attrs.get_int("group", 1);
    if (groups < 1 || w.constant.dim(0) % groups != 0 || w.constant.dim(0) < groups) return false;
  } else if (w.constant.rank() != 2) {
    return false;
  }
  if (q.per_channel() && normalize_axis(q.axis(), w.constant.rank(), "weight") != output_channel_axis(node))
    return false;
  const auto &zeros = q.zero_points();
  const bool shifted = std::any_of(zeros.begin(), zeros.end(), [](std::int64_t z) { return z != 0; });
  return shifted || plain_dtype(q.dtype()) != QTN_INT8;
}

/// w - zero point of each element.
std::vector<std::int64_t> centered(const Node &node, const Tensor &w) {
  const Quantizer &q = *w.quantizer();
  const std::size_t axis = output_channel_axis(node);
  const auto channels = static_cast<std::size_t>(w.dim(axis));
  const auto inner = static_cast<std::size_t>(element_count(w.shape(), axis + 1, w.rank()));
  std::vector<std::int64_t> values = int_values(to_plain(w.with_quantizer(nullptr)), "weight");
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] -= q.zero_points()[q.per_channel() ? i / inner % channels : 0];
  return values;
}

/// How many int8 add up to any of these.
std::int64_t parts_of(const std::vector<std::int64_t> &values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return values.empty() ? 1 : std::max<std::int64_t>({1, (*high + 126) / 127, (-*low + 127) / 128});
}

QuantizerPtr around_zero(const Quantizer &q) {
  return std::make_shared<Quantizer>(QTN_INT8, q.per_channel() ? QTN_PER_CHANNEL_SYMMETRIC : QTN_PER_TENSOR_SYMMETRIC,
                                     q.axis(), q.scales(), std::vector<std::int64_t>(q.count(), 0), q.numerics());
}

/// The axis of the weights that counts what is summed: input channels of a group, or rows.
std::size_t sum_axis(const Node &node) { return 1 - output_channel_axis(node); }

/// Int8 weights `parts` times as deep, which add up to `values` along their depth.
Tensor stacked(const Node &node, const Tensor &w, std::vector<std::int64_t> values, std::int64_t parts) {
  const std::size_t axis = sum_axis(node);
  Shape shape = w.shape();
  shape[axis] *= parts;
  const Tensor result(QTN_INT8, shape, around_zero(*w.quantizer()));
  for (std::int64_t p = 0; p < parts; ++p) {
    const Tensor part = result.slice(axis, p * w.dim(axis), (p + 1) * w.dim(axis), 1).with_quantizer(nullptr);
    const Tensor from(QTN_INT8, w.shape());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t q = std::clamp<std::int64_t>(values[i], -128, 127);
      from.as<std::int8_t>()[i] = static_cast<std::int8_t>(q);
      values[i] -= q;
    }
    copy_elements(part, from);
  }
  return result;
}

/// Input channels in the order in which `parts` times as deep weights of all groups read them.
std::vector<std::int64_t> repeated_channels(std::int64_t groups, std::int64_t each, std::int64_t parts) {
  std::vector<std::int64_t> order;
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t i = 0; i < parts * each; ++i) order.push_back(g * each + i % each);
  return order;
}

}  // namespace

void center_weights(Graph &g) {
  std::vector<Node> nodes;
  std::swap(nodes, g.nodes);
  for (Node &node : nodes) {
    if (is_linear(node) && is_8bit_activation(g.value(node.inputs[0]).quantizer) &&
        is_to_change(node, g.value(node.inputs[1]))) {
      const Tensor w = g.value(node.inputs[1]).constant.to_contiguous();
      const std::vector<std::int64_t> values = centered(node, w);
      const std::int64_t parts = parts_of(values);
      const std::int64_t groups = is_convolution(node) ? node.attrs.get_int("group", 1) : 1;
      if (parts > 1 && node.op == &ops::kConvTranspose && groups != 1) {
        // Its groups lie one after the other along the axis that would become deeper.
        g.nodes.push_back(std::move(node));
        continue;
      }
      const std::string name = g.value(node.inputs[1]).name;
      node.inputs[1] = g.add_constant(name + "_centered", stacked(node, w, values, parts));
      if (parts > 1) {
        // What does not fit int8 is the sum of what does: x is read once for each.
        const std::vector<std::int64_t> order = repeated_channels(groups, w.dim(sum_axis(node)), parts);
        const Value x = g.value(node.inputs[0]);
        Value wide;
        wide.name = node.name + "_repeated";
        wide.dtype = x.dtype;
        wide.quantizer = x.quantizer;
        Node repeat{node.name + "_repeat", &ops::kGather, {}, {}, {}, {}};
        repeat.attrs.set("axis", std::int64_t{is_convolution(node) ? 1 : -1});
        repeat.inputs = {node.inputs[0], g.add_constant(node.name + "_channels", Tensor::from_ints(order))};
        repeat.outputs = {g.add_value(std::move(wide))};
        node.inputs[0] = repeat.outputs[0];
        g.nodes.push_back(std::move(repeat));
      }
    }
    g.nodes.push_back(std::move(node));
  }
  remove_dead(g);
}

}  // namespace qtn::graph
