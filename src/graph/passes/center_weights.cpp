// SPDX-License-Identifier: Apache-2.0
// Weights as products take them: int8 around 0, or of fewer bits. Files have them in other types too, with zero points.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "graph/passes/weight_parts.hpp"

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

QuantizerPtr around_zero(const Quantizer &q) {
  return std::make_shared<Quantizer>(QTN_INT8, q.per_channel() ? QTN_PER_CHANNEL_SYMMETRIC : QTN_PER_TENSOR_SYMMETRIC,
                                     q.axis(), q.scales(), std::vector<std::int64_t>(q.count(), 0), q.numerics());
}

std::int64_t groups_of(const Node &node) { return is_convolution(node) ? node.attrs.get_int("group", 1) : 1; }

class Centering {
 public:
  explicit Centering(Graph &g) : g_(g) {}

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    std::vector<Readings> own(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (const auto w = centered(nodes[i])) {
        own[i] = readings(nodes[i], *w);
        if (!fit(own[i]) && !is_depthwise(nodes[i], *w) && !has_groups_in_a_row(nodes[i]))
          repeated_[place(nodes[i], *w)].rows.insert(own[i].begin(), own[i].end());
      }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (const auto w = centered(nodes[i])) change(nodes[i], *w, own[i]);
      g_.nodes.push_back(std::move(nodes[i]));
    }
    remove_dead(g_);
  }

 private:
  /// A value, the axis of its channels, how many groups they are in, and how many are in each.
  using Place = std::tuple<ValueId, std::int64_t, std::int64_t, std::int64_t>;
  /// What several nodes read is repeated once, with the channels that any of them needs.
  struct Repeated {
    Readings rows;
    ValueId value = kNoValue;
  };

  static Place place(const Node &node, const Centered &w) {
    return {node.inputs[0], is_convolution(node) ? 1 : -1, groups_of(node), w.shape[w.sum_axis]};
  }

  /// Nothing where a node takes its weights as they are, or is no product.
  std::optional<Centered> centered(const Node &node) const {
    if (!is_linear(node) || !is_8bit_activation(g_.value(node.inputs[0]).quantizer)) return {};
    const Value &w = g_.value(node.inputs[1]);
    if (!is_to_change(node, w)) return {};
    return Centered(w.constant, output_channel_axis(node), w.quantizer->zero_points());
  }

  static Readings readings(const Node &node, const Centered &w) {
    const Readings rows = readings_of(w);
    return groups_of(node) == 1 ? rows : all_of(rows);
  }

  void change(Node &node, const Centered &w, const Readings &own) {
    if (fit(own)) return deepen(node, w, own);
    if (is_depthwise(node, w)) return raise(node, w, own.rbegin()->part + 1);
    if (has_groups_in_a_row(node)) return;
    deepen(node, w, repeated_[place(node, w)].rows);
    node.inputs[0] = repeated(node, w);
  }

  /// Groups of ConvTranspose lie one after the other along the axis that would become deeper.
  static bool has_groups_in_a_row(const Node &node) { return node.op == &ops::kConvTranspose && groups_of(node) != 1; }

  void set_weights(Node &node, const Centered &w, std::size_t axis, const std::vector<Reading> &rows) {
    const Value &weight = g_.value(node.inputs[1]);
    Tensor stack = stacked(w, axis, rows, around_zero(*weight.quantizer));
    node.inputs[1] = g_.add_constant(weight.name + "_centered", std::move(stack));
  }

  void deepen(Node &node, const Centered &w, const Readings &rows) {
    set_weights(node, w, w.sum_axis, filled_up(node, rows));
  }

  /// Kernels read images whose channels are whole dwords where they lie. Channels that are such before they get further
  /// parts get some more, whose weights are zeros, and are whole dwords again.
  static std::vector<Reading> filled_up(const Node &node, const Readings &rows) {
    constexpr std::size_t kDword = 4;
    std::vector<Reading> all(rows.begin(), rows.end());
    if (!is_convolution(node) || fit(rows) || channels_of(rows) % kDword != 0) return all;
    const std::int64_t zeros = rows.rbegin()->part + 1;
    while (all.size() % kDword != 0) all.push_back({zeros, rows.begin()->channel});
    return all;
  }

  /// How many channels there are.
  static std::size_t channels_of(const Readings &rows) {
    return static_cast<std::size_t>(std::ranges::count_if(rows, [](const Reading &r) { return r.part == 0; }));
  }

  /// Whether each row of its window is the one behind the last one in its image, and numbers are those of windows.
  static bool is_depthwise(const Node &node, const Centered &w) {
    constexpr std::int64_t kMost = 1 << 20;
    const auto all = [&](const char *name, const auto &hold) {
      return std::ranges::all_of(node.attrs.get_ints(name), hold);
    };
    const auto moderate = [](std::int64_t v) { return v >= -kMost && v <= kMost; };
    const std::string fill = node.attrs.get_string("auto_pad", "NOTSET");
    return node.op == &ops::kConv && w.shape.size() > 2 && w.shape[1] == 1 && groups_of(node) > 1 &&
           (fill == "NOTSET" || fill == "VALID") && all("dilations", [](std::int64_t d) { return d == 1; }) &&
           all("strides", moderate) && all("pads", moderate) && all("kernel_shape", moderate);
  }

  /// A depthwise convolution stays one where its image has each row several times, and its window too.
  void raise(Node &node, const Centered &w, std::int64_t parts) {
    const std::size_t rank = w.shape.size(), axis = 2, axes = rank - axis;
    std::vector<Reading> rows;
    for (std::int64_t r = 0; r < w.shape[axis]; ++r)
      for (std::int64_t part = 0; part < parts; ++part) rows.push_back({part, r});
    set_weights(node, w, axis, rows);
    const auto raised = [&](const char *name, std::size_t count, std::int64_t otherwise) {
      std::vector<std::int64_t> values = node.attrs.get_ints(name, std::vector<std::int64_t>(count, otherwise));
      for (std::size_t i = 0; i < values.size(); i += axes) values[i] *= parts;
      node.attrs.set(name, values);
    };
    raised("strides", axes, 1);
    raised("pads", 2 * axes, 0);
    if (node.attrs.has("kernel_shape")) raised("kernel_shape", axes, 1);
    Tensor scales(QTN_FLOAT32, {static_cast<std::int64_t>(rank)});
    for (std::size_t i = 0; i < rank; ++i) scales.as<float>()[i] = i == axis ? static_cast<float>(parts) : 1.0f;
    Node repeat{node.name + "_repeat", &ops::kResize, {}, {}, {}, {}};
    repeat.attrs.set("mode", std::string("nearest"));
    repeat.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
    repeat.attrs.set("nearest_mode", std::string("floor"));
    repeat.inputs = {node.inputs[0], kNoValue, g_.add_constant(node.name + "_rows", std::move(scales))};
    node.inputs[0] = add(std::move(repeat));
  }

  /// x with some of its channels once more behind it: what does not fit int8 is the sum of what does.
  ValueId repeated(const Node &node, const Centered &w) {
    const Place at = place(node, w);
    auto &[rows, value] = repeated_[at];
    if (value != kNoValue) return value;
    const auto &[x, axis, groups, each] = at;
    std::vector<std::int64_t> order;
    for (std::int64_t g = 0; g < groups; ++g)
      for (const Reading &r : filled_up(node, rows)) order.push_back(g * each + r.channel);
    Node repeat{node.name + "_repeat", &ops::kGather, {}, {}, {}, {}};
    repeat.attrs.set("axis", axis);
    repeat.inputs = {x, g_.add_constant(node.name + "_channels", Tensor::from_ints(order))};
    value = add(std::move(repeat));
    return value;
  }

  /// A node whose result lies on the grid of its operand.
  ValueId add(Node &&node) {
    const Value &x = g_.value(node.inputs[0]);
    Value wide;
    wide.name = node.name + "ed";
    wide.dtype = x.dtype;
    wide.quantizer = x.quantizer;
    const ValueId result = g_.add_value(std::move(wide));
    node.outputs = {result};
    g_.nodes.push_back(std::move(node));
    return result;
  }

  Graph &g_;
  std::map<Place, Repeated> repeated_;
};

}  // namespace

void center_weights(Graph &g) { Centering(g).run(); }

}  // namespace qtn::graph
