// SPDX-License-Identifier: Apache-2.0
// Networks of frameworks that keep channels last, which have a Transpose on either side of each convolution, and
// one-dimensional convolutions as images of one row, which have a Squeeze behind them.
#include <algorithm>
#include <array>
#include <numeric>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/passes/axis_view.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"
#include "graph/unique_names.hpp"

namespace qtn::graph {
namespace {

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

bool is_any_of(const Node &node, std::span<const std::string_view> names) {
  return std::ranges::find(names, std::string_view(node.op->name)) != names.end();
}

/// Whether the node makes images with channels first of images.
bool makes_images(const Node &node) {
  constexpr std::array<std::string_view, 13> kOthers = {"BatchNormalization",
                                                        "InstanceNormalization",
                                                        "GroupNormalization",
                                                        "MaxPool",
                                                        "AveragePool",
                                                        "GlobalAveragePool",
                                                        "GlobalMaxPool",
                                                        "LpPool",
                                                        "LRN",
                                                        "Resize",
                                                        "Upsample",
                                                        "DepthToSpace",
                                                        "SpaceToDepth"};
  return is_convolution(node) || is_any_of(node, kOthers);
}

bool is_reduction(const Node &node) { return std::string_view(node.op->name).starts_with("Reduce"); }

bool keeps_axes(const Node &node) {
  constexpr std::array<std::string_view, 4> kMoves = {"Concat", "Pad", "Slice", "Split"};
  return node.op->elementwise || is_any_of(node, kMoves);
}

bool is_constant(const Graph &g, ValueId v) { return v == kNoValue || g.value(v).is_constant(); }

Shape ones(std::size_t rank) {
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(1);
  return shape;
}

/// A constant that meets the view, for what is viewed. Numbers stay as they are; nullopt where there is none.
std::optional<Tensor> constant_of_viewed(const Value &value, const AxisView &view) {
  const Tensor &t = value.constant;
  const std::size_t rank = view.axes.size();
  if (t.rank() > rank) return std::nullopt;
  if (t.count() == 1) return t;
  if (value.quantizer || t.quantized()) return std::nullopt;
  Shape longer = ones(rank);
  for (std::size_t i = 0; i < t.rank(); ++i) longer[rank - t.rank() + i] = t.dim(i);
  std::vector<std::int32_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t i) { return view.axes[static_cast<std::size_t>(i)]; });
  Shape shape = ones(view.rank);
  for (std::size_t i = 0; i < rank; ++i) shape[view.axes[i]] = longer[i];
  return t.to_contiguous().reshaped(longer).permute(order).to_contiguous().reshaped(shape);
}

std::vector<std::int64_t> signed_axes(const std::vector<std::size_t> &axes) { return {axes.begin(), axes.end()}; }

class ChannelsFirst {
 public:
  explicit ChannelsFirst(Graph &g)
      : g_(g),
        facts_(g),
        seen_(g.values.size()),
        image_(g.values.size(), false),
        kind_(g.nodes.size(), Kind::other),
        component_(g.values.size()) {
    std::iota(component_.begin(), component_.end(), std::size_t{0});
  }

  void run() {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) look_at(n);
    if (settle()) rewrite();
  }

 private:
  enum class Kind { other, mover, computes };
  /// That a value is a view of another one, or of what its own maker will make instead.
  struct Seen {
    ValueId of;
    AxisView view;
  };
  struct Count {
    std::size_t before = 0, after = 0, computing = 0;
  };

  std::size_t find(std::size_t v) {
    while (component_[v] != v) v = component_[v] = component_[component_[v]];
    return v;
  }
  void unite(ValueId a, ValueId b) { component_[find(index(a))] = find(index(b)); }
  /// nullopt for all values that are made on the way.
  const std::optional<Seen> &seen(ValueId v) const {
    static const std::optional<Seen> kNone;
    return v == kNoValue || index(v) >= seen_.size() ? kNone : seen_[index(v)];
  }

  bool same_grid(ValueId a, ValueId b) const {
    const QuantizerPtr &p = g_.value(a).quantizer, &q = g_.value(b).quantizer;
    return p ? q && *p == *q : !q;
  }

  void look_at(std::size_t n) {
    const Node &node = g_.nodes[n];
    if (begins_view(node) || continues_view(node)) {
      kind_[n] = Kind::mover;
    } else if (const auto view = computed_view(node)) {
      kind_[n] = Kind::computes;
      for (const ValueId v : node.outputs) {
        if (v == kNoValue) continue;
        seen_[index(v)] = Seen{v, *view};
        image_[index(v)] = view->is_identity();
        for (const ValueId x : node.inputs)
          if (seen(x)) unite(x, v);
      }
    } else {
      mark_images(node);
    }
  }

  void mark_images(const Node &node) {
    const bool made = makes_images(node) || (keeps_axes(node) && std::ranges::any_of(node.inputs, [&](ValueId v) {
                                               return v != kNoValue && image_[index(v)];
                                             }));
    for (const ValueId v : node.outputs)
      if (v != kNoValue) image_[index(v)] = made;
  }

  bool is_mover(const Node &node) const {
    constexpr std::array<std::string_view, 3> kMovers = {"Transpose", "Squeeze", "Unsqueeze"};
    return is_any_of(node, kMovers) && !node.clamp && same_grid(node.inputs[0], node.outputs[0]);
  }

  bool begins_view(const Node &node) {
    const ValueId x = input_of(node, 0);
    if (x == kNoValue || seen(x) || !image_[index(x)] || !is_mover(node) || facts_.rank_of(x) < 3) return false;
    const auto view = AxisView::identity(static_cast<std::size_t>(facts_.rank_of(x))).behind(g_, node);
    if (!view || view->is_identity() || view->axes.size() < 3) return false;
    seen_[index(node.outputs[0])] = Seen{x, *view};
    return true;
  }

  bool continues_view(const Node &node) {
    const ValueId x = input_of(node, 0), y = node.outputs.empty() ? kNoValue : node.outputs[0];
    if (!seen(x) || !is_mover(node)) return false;
    const auto view = seen(x)->view.behind(g_, node);
    if (!view) return false;
    image_[index(y)] = view->is_identity();
    seen_[index(y)] = Seen{seen(x)->of, *view};
    unite(x, y);
    return true;
  }

  /// The view that the results will be of what the node can compute of what is viewed.
  std::optional<AxisView> computed_view(const Node &node) const {
    if (!node.bodies.empty() || ops::as_custom(*node.op) || !(keeps_axes(node) || is_reduction(node)))
      return std::nullopt;
    for (const ValueId v : node.outputs)
      if (v != kNoValue && g_.value(v).quantizer && !is_8bit_activation(g_.value(v).quantizer)) return std::nullopt;
    const AxisView *view = nullptr;
    for (const ValueId v : node.inputs) {
      if (is_constant(g_, v)) continue;
      if (!seen(v) || (view && !(*view == seen(v)->view))) return std::nullopt;
      view = &seen(v)->view;
    }
    if (!view) return std::nullopt;
    const std::size_t rank = view->axes.size();
    if (is_reduction(node)) return reduced_view(node, *view);
    if (node.op->elementwise) {
      const auto fits = [&](ValueId v) {
        return v == kNoValue || !g_.value(v).is_constant() || constant_of_viewed(g_.value(v), *view);
      };
      return std::ranges::all_of(node.inputs, fits) ? std::optional(*view) : std::nullopt;
    }
    if (!seen(node.inputs[0])) return std::nullopt;
    const std::string_view op = node.op->name;
    if (op == "Concat" && !std::ranges::all_of(node.inputs, [&](ValueId v) { return seen(v).has_value(); }))
      return std::nullopt;
    if (op == "Concat" || op == "Split")
      return axes_from_front({node.attrs.get_int("axis", 0)}, rank) ? std::optional(*view) : std::nullopt;
    if (op == "Pad")
      return input_of(node, 3) == kNoValue && is_list(node.inputs[1], 2 * rank) ? std::optional(*view) : std::nullopt;
    return sliced_axes(node, rank) ? std::optional(*view) : std::nullopt;
  }

  bool is_list(ValueId v, std::size_t size) const {
    return v != kNoValue && g_.value(v).constant.dtype() == QTN_INT64 &&
           g_.value(v).constant.count() == static_cast<std::int64_t>(size);
  }

  std::optional<std::vector<std::size_t>> sliced_axes(const Node &node, std::size_t rank) const {
    if (input_of(node, 3) != kNoValue) return constant_axes_of(g_, node.inputs[3], rank);
    std::vector<std::int64_t> axes(static_cast<std::size_t>(g_.value(node.inputs[1]).constant.count()));
    std::iota(axes.begin(), axes.end(), 0);
    return axes_from_front(std::move(axes), rank);
  }

  /// What a mean over all places of an image is: places are then the axes behind its channels.
  std::optional<AxisView> reduced_view(const Node &node, const AxisView &view) const {
    const auto axes = constant_axes_of(g_, input_of(node, 1), view.axes.size());
    if (!axes || axes->empty()) return std::nullopt;  // which are all axes, or none
    std::vector<std::size_t> reduced = view.left_out();
    for (const std::size_t axis : *axes) reduced.push_back(view.axes[axis]);
    std::ranges::sort(reduced);
    std::vector<std::size_t> places(view.rank - 2);
    std::iota(places.begin(), places.end(), std::size_t{2});
    if (reduced != places) return std::nullopt;
    if (node.attrs.get_int("keepdims", 1) != 0) return view;
    AxisView left{2, {}};
    for (const std::size_t axis : view.axes)
      if (axis < 2) left.axes.push_back(axis);
    return left;
  }

  /// Whether there is anything to do: where fewer nodes that move elements are left, or as many behind others.
  bool settle() {
    needed_.assign(g_.values.size(), false);
    std::vector<bool> moved(g_.values.size(), false);
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      for (const ValueId v : g_.nodes[n].inputs)
        if (seen(v) && kind_[n] == Kind::other) {
          needed_[index(v)] = true;
          moved[index(v)] = moved[index(v)] || !g_.nodes[n].op->reads_shapes;
        }
    for (const ValueId v : g_.outputs)
      if (seen(v)) needed_[index(v)] = moved[index(v)] = true;
    std::vector<Count> counts(g_.values.size());
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (kind_[n] == Kind::other) continue;
      Count &count =
          counts[find(index(*std::ranges::find_if(g_.nodes[n].outputs, [](ValueId v) { return v != kNoValue; })))];
      ++(kind_[n] == Kind::mover ? count.before : count.computing);
    }
    for (std::size_t v = 0; v < seen_.size(); ++v)
      if (seen_[v] && moved[v]) counts[find(v)].after += seen_[v]->view.node_count();
    accepted_.assign(g_.values.size(), false);
    bool any = false;
    for (std::size_t v = 0; v < seen_.size(); ++v) {
      const Count &count = counts[find(v)];
      accepted_[v] = seen_[v] && (count.computing > 0 ? count.after <= count.before : count.after < count.before);
      any = any || accepted_[v];
    }
    return any;
  }

  bool accepted(ValueId v) const { return v != kNoValue && accepted_[index(v)]; }

  Shape viewed_shape(const Shape &shape, const AxisView &view) const {
    Shape made = ones(view.rank);
    for (std::size_t i = 0; i < view.axes.size(); ++i) made[view.axes[i]] = shape[i];
    return made;
  }

  /// The value that is viewed. Where a node computes it, and something reads the view, it is a new one.
  ValueId viewed(ValueId v) const {
    const ValueId of = seen(v)->of;
    const auto made = made_.find(of);
    return made == made_.end() ? of : made->second;
  }

  void rewrite() {
    for (const Node &node : g_.nodes) names_.take(node.name);
    const std::size_t values = g_.values.size();
    for (std::size_t v = 0; v < values; ++v) make_viewed(static_cast<ValueId>(v));
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      Node &node = g_.nodes[i];
      if (kind_[i] == Kind::computes && accepted(first_output(node)))
        compute_of_viewed(node);
      else if (kind_[i] == Kind::other)
        for (ValueId &v : node.inputs)
          if (accepted(v) && seen(v)->view.is_identity()) v = viewed(v);
    }
    std::size_t n = 0;
    std::erase_if(g_.nodes,
                  [&](const Node &node) { return kind_[n++] == Kind::mover && accepted(first_output(node)); });
    for (std::size_t v = 0; v < values; ++v)
      if (accepted_[v] && needed_[v]) make_view(static_cast<ValueId>(v));
    sort_topologically(g_);
    remove_identities(g_);
  }

  static ValueId first_output(const Node &node) {
    return *std::ranges::find_if(node.outputs, [](ValueId v) { return v != kNoValue; });
  }

  void make_viewed(ValueId v) {
    if (!accepted(v) || seen(v)->of != v || seen(v)->view.is_identity()) return;
    const AxisView &view = seen(v)->view;
    const std::optional<Shape> shape = g_.value(v).shape;
    const std::optional<Shape> turned =
        shape && shape->size() == view.axes.size() ? std::optional(viewed_shape(*shape, view)) : std::nullopt;
    if (!needed_[index(v)]) {
      g_.value(v).shape = turned;
      return;
    }
    Value made;
    made.name = g_.names.make(g_.values, g_.value(v).name + "_channels_first");
    made.dtype = g_.value(v).dtype;
    made.quantizer = g_.value(v).quantizer;
    made.shape = turned;
    made_[v] = g_.add_value(std::move(made));
  }

  void compute_of_viewed(Node &node) {
    const AxisView view =
        seen(*std::ranges::find_if(node.inputs, [&](ValueId v) { return seen(v).has_value(); }))->view;
    const std::string_view op = node.op->name;
    if (is_reduction(node)) {
      set_list(node, 1, mapped(view, *constant_axes_of(g_, node.inputs[1], view.axes.size()), true));
    } else if (op == "Concat" || op == "Split") {
      const auto axis = axes_from_front({node.attrs.get_int("axis", 0)}, view.axes.size());
      node.attrs.set("axis", static_cast<std::int64_t>(view.axes[(*axis)[0]]));
    } else if (op == "Pad") {
      set_list(node, 1, pads_of_viewed(int_values(g_.value(node.inputs[1]).constant, "Pad"), view));
    } else if (op == "Slice") {
      const auto axes = sliced_axes(node, view.axes.size());
      node.inputs.resize(std::max<std::size_t>(node.inputs.size(), 4), kNoValue);
      set_list(node, 3, mapped(view, *axes, false));
    } else {
      for (ValueId &v : node.inputs)
        if (v != kNoValue && g_.value(v).is_constant()) v = turned_constant(v, view);
    }
    for (ValueId &v : node.inputs)
      if (seen(v)) v = viewed(v);
    for (ValueId &v : node.outputs)
      if (v != kNoValue) v = viewed(v);
  }

  static std::vector<std::int64_t> mapped(const AxisView &view, const std::vector<std::size_t> &axes, bool left_out) {
    std::vector<std::int64_t> made = left_out ? signed_axes(view.left_out()) : std::vector<std::int64_t>();
    for (const std::size_t axis : axes) made.push_back(static_cast<std::int64_t>(view.axes[axis]));
    if (left_out) std::ranges::sort(made);
    return made;
  }

  static std::vector<std::int64_t> pads_of_viewed(const std::vector<std::int64_t> &pads, const AxisView &view) {
    std::vector<std::int64_t> made(2 * view.rank, 0);
    for (std::size_t i = 0; i < view.axes.size(); ++i) {
      made[view.axes[i]] = pads[i];
      made[view.rank + view.axes[i]] = pads[view.axes.size() + i];
    }
    return made;
  }

  void set_list(Node &node, std::size_t input, const std::vector<std::int64_t> &values) {
    node.inputs[input] = g_.add_constant(node.name + "_list", Tensor::from_ints(values));
  }

  ValueId turned_constant(ValueId v, const AxisView &view) {
    if (g_.value(v).constant.count() == 1) return v;
    const Tensor turned = *constant_of_viewed(g_.value(v), view);
    const std::string origin = original_name(g_.value(v));
    const ValueId made = g_.add_constant(g_.value(v).name + "_channels_first", turned);
    g_.value(made).origin = origin;
    return made;
  }

  /// The nodes that make the view for its readers.
  void make_view(ValueId v) {
    const AxisView &view = seen(v)->view;
    ValueId x = viewed(v);
    if (x == v || (view.is_identity() && !facts_.uses.is_output[index(v)])) return;
    const std::string base = g_.value(v).name;
    if (view.is_identity()) return add_node("Identity", base, {x}, v);
    const bool squeezes = view.axes.size() < view.rank, turns = !std::ranges::is_sorted(view.axes);
    if (squeezes) {
      ValueId y = v;
      if (turns) {
        Value between;
        between.name = g_.names.make(g_.values, base + "_squeezed");
        between.dtype = g_.value(v).dtype;
        between.quantizer = g_.value(v).quantizer;
        y = g_.add_value(std::move(between));
      }
      const ValueId axes = g_.add_constant(base + "_axes", Tensor::from_ints(signed_axes(view.left_out())));
      add_node("Squeeze", base, {x, axes}, y);
      x = y;
    }
    if (!turns) return;
    add_node("Transpose", base, {x}, v);
    g_.nodes.back().attrs.set("perm", signed_axes(view.permutation()));
  }

  void add_node(const char *op, const std::string &base, std::vector<ValueId> inputs, ValueId y) {
    g_.nodes.push_back({names_.make(base + "_" + op), ops::find_op(op), {}, std::move(inputs), {y}, {}});
  }

  Graph &g_;
  const Facts facts_;
  std::vector<std::optional<Seen>> seen_;  ///< by value
  std::vector<bool> image_;                ///< by value: channels are axis 1
  std::vector<Kind> kind_;                 ///< by node
  std::vector<std::size_t> component_;     ///< by value: of views that lead to one another
  std::vector<bool> needed_, accepted_;
  std::map<ValueId, ValueId> made_;
  UniqueNames names_;
};

}  // namespace

void keep_channels_first(Graph &g) {
  const bool any = std::ranges::any_of(g.nodes, [](const Node &node) {
    return std::string_view(node.op->name) == "Transpose" || std::string_view(node.op->name) == "Squeeze";
  });
  if (any) ChannelsFirst(g).run();
}

}  // namespace qtn::graph
