// SPDX-License-Identifier: Apache-2.0
// Before opset 18 files had no GroupNormalization: exporters wrote an InstanceNormalization of the groups, each as one
// channel, between two Reshapes, and a factor and an addend for each channel behind it.
#include <algorithm>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/known_shapes.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pattern.hpp"
#include "ops/common/epsilon.hpp"

namespace qtn::graph {
namespace {

class GroupNormalizations {
 public:
  explicit GroupNormalizations(Graph &g) : g_(g), facts_(g) {}

  void run() {
    for (Node &node : g_.nodes)
      if (node.op == &ops::kInstanceNormalization) name(node);
    remove_dead(g_);
  }

 private:
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

  static bool is_reshape(const Node &node) { return std::string_view(node.op->name) == "Reshape"; }

  /// Perhaps with a grid behind it.
  const Node *maker(ValueId v, std::string_view op) const {
    const Node *node = maker_of(g_, facts_.uses, v);
    return node && node->op->name == op ? node : nullptr;
  }

  /// The only node that reads v, which has no grid of its own and is not touched by a clamp.
  Node *reader(const Node &maker) const {
    const ValueId v = maker.outputs[0];
    if (maker.clamp || g_.value(v).quantizer || !facts_.uses.single_use(v)) return nullptr;
    return &g_.nodes[static_cast<std::size_t>(facts_.uses.consumers[at(v)][0])];
  }

  /// Where no input leaves it open.
  const Shape *shape_of(ValueId v) const {
    const auto &type = facts_.types[at(v)];
    return !facts_.open && type ? &type->shape : nullptr;
  }

  /// Whether the Reshape makes [batch, groups, all of a group] of x, whose batch it keeps.
  bool parts_groups(const Node &reshape, std::int64_t groups) const {
    const Shape *x = shape_of(reshape.inputs[0]), *y = shape_of(reshape.outputs[0]);
    if (x && y && x->size() >= 3) return y->size() == 3 && (*y)[0] == (*x)[0] && (*y)[1] == groups;
    const Value &to = g_.value(reshape.inputs[1]);
    if (!to.is_constant() || reshape.attrs.get_int("allowzero", 0) != 0) return false;
    const std::vector<std::int64_t> dims = int_values(to.constant, "shape");
    return dims.size() == 3 && dims[0] == 0 && dims[1] == groups && dims[2] == -1;
  }

  /// Whether the Reshape gives its result the shape of x.
  bool restores(const Node &reshape, ValueId x) const {
    const Shape *of_x = shape_of(x), *of_y = shape_of(reshape.outputs[0]);
    if (of_x && of_y) return *of_x == *of_y;
    const Node *shape = maker(reshape.inputs[1], "Shape");
    return shape && shape->inputs[0] == x && shape->attrs.get_int("start", 0) == 0 && !shape->attrs.has("end");
  }

  /// The constant among the operands, where it is one number for each channel: [channels, 1, 1 ...].
  const Tensor *of_channels(const Node &node) const {
    for (const ValueId v : node.inputs) {
      const Tensor *t = float_constant(g_, v);
      if (!t || t->rank() < 2) continue;
      const std::size_t axis = t->rank() > 2 && t->dim(0) == 1 && t->dim(1) != 1 ? 1 : 0;
      if (t->dim(axis) == t->count()) return t;
    }
    return nullptr;
  }

  /// How many channels each value has in every run. Where shapes of inputs are open, it may still be known from weights on
  /// the way to it. -1: it is not known.
  std::vector<std::int64_t> find_channels() const {
    const std::vector<KnownShapes> batches = shapes_of_batches(g_);
    std::vector<std::int64_t> channels(g_.values.size(), -1);
    const auto learn = [&](ValueId v, const Node *made) {
      std::int64_t &found = channels[at(v)];
      if (const Shape *shape = shape_of(v)) found = channels_of(*shape);
      if (const auto &shape = g_.value(v).shape; found < 1 && shape) found = channels_of(*shape);
      if (found < 1) found = channels_of(batches, v);
      if (found < 1 && made) found = channels_of(*made, channels);
    };
    for (const ValueId v : g_.inputs) learn(v, nullptr);
    for (const Node &node : g_.nodes)
      for (const ValueId v : node.outputs)
        if (v != kNoValue) learn(v, &node);
    return channels;
  }

  static std::int64_t channels_of(const Shape &shape) { return shape.size() > 1 ? shape[1] : -1; }

  static std::int64_t channels_of(const std::vector<KnownShapes> &batches, ValueId v) {
    std::vector<std::int64_t> channels;
    for (const KnownShapes &shapes : batches) channels.push_back(shapes.of(v) ? channels_of(*shapes.of(v)) : -1);
    return std::ranges::count(channels, channels[0]) == std::ssize(channels) ? channels[0] : -1;
  }

  std::int64_t channels_of(const Node &made, const std::vector<std::int64_t> &known) const {
    if (is_convolution(made)) {
      const Value &weight = g_.value(made.inputs[1]);
      return weight.is_constant() ? output_channels(made, weight.constant.shape()) : -1;
    }
    if (made.op == &ops::kGroupNormalization || made.op == &ops::kBatchNormalization) {
      const Value &scale = g_.value(made.inputs[1]);
      return scale.is_constant() ? scale.constant.count() : -1;
    }
    if (made.op == &ops::kResize || made.op == &ops::kMaxPool || made.op == &ops::kAveragePool)
      return known[at(made.inputs[0])];
    if (made.op == &ops::kConcat && made.attrs.get_int("axis", 0) == 1) {
      std::int64_t sum = 0;
      for (const ValueId v : made.inputs) {
        if (known[at(v)] < 1) return -1;
        sum += known[at(v)];
      }
      return sum;
    }
    if (!made.op->elementwise) return -1;
    std::int64_t most = -1;  // one channel may be broadcast
    const std::int64_t rank = facts_.rank_of(made.outputs[0]);
    for (const ValueId v : made.inputs) {
      if (v == kNoValue) continue;
      const Tensor &t = g_.value(v).constant;
      const std::int64_t behind = rank - 1, axes = static_cast<std::int64_t>(t.rank());
      if (!t.has_data())
        most = std::max(most, known[at(v)]);
      else if (rank > 1 && axes >= behind)
        most = std::max(most, t.dim(static_cast<std::size_t>(axes - behind)));
    }
    return most > 1 ? most : -1;
  }

  /// Whether the constant's channels are those of x: one channel of x would be broadcast to them.
  bool fits(const Tensor &t, ValueId x, std::int64_t groups) {
    const std::size_t axis = t.dim(0) == t.count() ? 0 : 1;
    return t.count() % groups == 0 && facts_.rank_of(x) == static_cast<std::int64_t>(t.rank() - axis + 1) &&
           (channels_.empty() ? channels_ = find_channels() : channels_)[at(x)] == t.count();
  }

  std::vector<float> values(const Tensor &t) const {
    const Tensor list = t.to_contiguous();
    return {list.as<const float>(), list.as<const float>() + list.count()};
  }

  void name(Node &norm) {
    const Node *parts = maker(norm.inputs[0], "Reshape");
    const Tensor *scales = float_constant(g_, norm.inputs[1]), *shifts = float_constant(g_, norm.inputs[2]);
    if (!parts || !scales || !shifts || !facts_.uses.single_use(norm.inputs[0])) return;
    const ValueId x = parts->inputs[0];
    const QuantizerPtr &grid = g_.value(norm.inputs[0]).quantizer;
    const std::int64_t groups = scales->count();
    if ((grid && grid != g_.value(x).quantizer) || !parts_groups(*parts, groups)) return;
    Node *whole = reader(norm);
    if (!whole || !is_reshape(*whole) || whole->inputs[0] != norm.outputs[0] || !restores(*whole, x)) return;
    Node *mul = reader(*whole), *add = nullptr;
    const Tensor *factors = mul && mul->op == &ops::kMul ? of_channels(*mul) : nullptr;
    if (!factors || !fits(*factors, x, groups)) return;
    const std::int64_t channels = factors->count();
    add = reader(*mul);
    const Tensor *addends = add && add->op == &ops::kAdd ? of_channels(*add) : nullptr;
    if (!addends || addends->count() != channels || !fits(*addends, x, groups)) return;

    std::vector<float> gain = values(*factors), shift = values(*addends);
    const std::vector<float> of_group = values(*scales), moved = values(*shifts);
    for (std::size_t c = 0; c < gain.size(); ++c) {
      const std::size_t group = c / static_cast<std::size_t>(channels / groups);
      shift[c] += gain[c] * moved[group];
      gain[c] *= of_group[group];
    }
    const auto constant = [&](const char *ending, const std::vector<float> &list) {
      return g_.add_constant(add->name + ending, Tensor::from<float>(QTN_FLOAT32, Shape{channels}, list));
    };
    add->inputs = {x, constant("_scale", gain), constant("_bias", shift)};
    add->op = &ops::kGroupNormalization;
    add->attrs = Attrs();
    add->attrs.set("num_groups", groups);
    add->attrs.set("epsilon", norm.attrs.get_float("epsilon", ops::kDefaultEpsilon));
  }

  Graph &g_;
  const Facts facts_;
  std::vector<std::int64_t> channels_;  ///< by value id, once they are asked for
};

}  // namespace

void name_group_normalizations(Graph &g) {
  const auto is_one = [](const Node &node) { return node.op == &ops::kInstanceNormalization; };
  if (std::ranges::any_of(g.nodes, is_one)) GroupNormalizations(g).run();
}

}  // namespace qtn::graph
