// SPDX-License-Identifier: Apache-2.0
#include "quant/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.hpp"
#include "base/stable_order.hpp"
#include "core/choose_options.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/tables.hpp"
#include "quant/copies.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/stored_weights.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

/// What a node does by itself, or what the mode of its settings makes of it: a layer that has that mode, or floats.
NodePlan plan_of(const Graph &g, const graph::Facts &facts, const Node &node, const Config &config) {
  Classified classified = classify(g, facts, node);
  NodePlan plan{.role = classified.role, .why = std::move(classified.why), .settings = config.settings_for(node)};
  if (!plan.settings || plan.settings->mode == Mode::fixed) return plan;
  const bool dynamic = plan.settings->mode == Mode::dynamic;
  if (!dynamic) plan.settings = with_fitting_blocks(g, node, *plan.settings);
  if (has_table(g, node, *plan.settings) || (dynamic ? has_dynamic_form(g, facts, node) : has_stored_weights(g, node)))
    plan.mode = plan.settings->mode;
  if (plan.role != Role::floating) plan.why = cat("mode \"", dynamic ? "dynamic" : "weights_only", "\"");
  plan.role = Role::floating;
  return plan;
}

/// Calls f(value) for the activations that a node reads as data.
template <class F>
void each_operand(const Graph &g, const graph::Facts &facts, const Node &node, Role role, F f) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool data = role == Role::weighted ? i == 0 : role == Role::moving ? moves_operand(node, i) : true;
    if (data && is_activation(g, facts, node.inputs[i])) f(node.inputs[i]);
  }
}

template <class F>
void each_output(const graph::Facts &facts, const Node &node, F f) {
  for (const ValueId v : node.outputs)
    if (v != kNoValue && facts.is_float(v)) f(v);
}

/// What the configuration makes integers, whatever reads it. Values without a maker that are not inputs are gone.
std::vector<bool> asked_by_hand(const Graph &g, const graph::Facts &facts, const std::vector<NodePlan> &plans,
                                const Config &config) {
  std::vector<bool> asked(g.values.size(), false);
  const auto ask = [&](ValueId v, bool unless_said) {
    asked[index(v)] = is_activation(g, facts, v) && config.quantizes(g.value(v).name, unless_said);
  };
  for (const ValueId v : g.inputs) ask(v, false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n)
    for (const ValueId v : g.nodes[n].outputs)
      if (v != kNoValue)
        ask(v, facts.uses.is_output[index(v)] && plans[n].settings && plans[n].settings->quantize_outputs);
  return asked;
}

/// A function of one activation of which several nodes are parts: only what goes into it and what comes out has a grid.
/// A rule for a node, or for what it makes, leaves it apart. So do recipes of frameworks that quantize one operator after
/// the other, whose numbers are to be met.
std::optional<graph::Table> table_ending_at(const Graph &g, const graph::Facts &facts,
                                            const std::vector<NodePlan> &plans, const std::vector<bool> &by_hand,
                                            const Config &config, std::size_t n) {
  const auto may_join = [&](std::size_t before, ValueId v) {
    const NodePlan &plan = plans[before];
    // A Max or a Min would else choose among integers of one grid.
    const bool computes =
        plan.role == Role::pointwise || (plan.role == Role::moving && g.nodes[before].op->elementwise);
    return computes && plan.settings && plan.settings->mode == Mode::fixed && !by_hand[index(v)] &&
           !config.names_tensor(g.value(v).name) && !config.selects(g.nodes[before]) && !plan.settings->fixed_outputs;
  };
  return graph::table_ending_at(
      g, facts.uses, n, [&](ValueId v) { return facts.is_float(v); }, may_join);
}

/// A node that reads a value comes later in the order, so one walk from the end settles every value: when a node is
/// reached, all who could ask for its outputs have spoken.
std::vector<bool> wanted_values(const Graph &g, const graph::Facts &facts, std::vector<NodePlan> &plans,
                                const std::vector<bool> &by_hand, const Config &config, bool trained) {
  std::vector<bool> wanted = by_hand;
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    const Node &node = g.nodes[n];
    NodePlan &plan = plans[n];
    if (plan.role == Role::floating || !plan.settings) continue;
    bool asked = false;
    const std::vector<bool> &reason = multiplies_activations(g, facts, node) ? by_hand : wanted;
    each_output(facts, node, [&](ValueId v) { asked = asked || reason[index(v)]; });
    plan.integer = asked || plan.role == Role::weighted;
    if (!plan.integer) continue;
    if (plan.role == Role::pointwise && !trained)
      if (const auto table = table_ending_at(g, facts, plans, by_hand, config, n); table && table->nodes.size() > 1) {
        wanted[index(table->x)] = true;
        continue;
      }
    if (plan.role == Role::moving) each_output(facts, node, [&](ValueId v) { wanted[index(v)] = true; });
    each_operand(g, facts, node, plan.role, [&](ValueId v) { wanted[index(v)] = true; });
  }
  return wanted;
}

/// Sets of values that share a grid, and for each set which node reads it, other than nodes that move integers within
/// it.
class Ties {
 public:
  static constexpr std::int32_t kNobody = -1, kOthers = -2;  ///< or the index of the one Concat

  explicit Ties(std::size_t size) : parent_(size), reader_(size, kNobody) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void unite(std::size_t a, std::size_t b) {
    add_reader(b, reader_[find(a)]);
    parent_[find(a)] = find(b);
  }
  void add_reader(std::size_t v, std::int32_t reader) {
    std::int32_t &known = reader_[find(v)];
    if (reader != kNobody && known != reader) known = known == kNobody ? reader : kOthers;
  }
  /// Unites what only this Concat reads with its result.
  void unite_with_concat(std::size_t part, std::size_t result) {
    if (find(part) == find(result)) return;
    reader_[find(part)] = kNobody;
    unite(part, result);
  }
  bool read_only_by(std::size_t v, std::int32_t concat) { return reader_[find(v)] == concat; }

 private:
  std::vector<std::size_t> parent_;
  std::vector<std::int32_t> reader_;
};

class Grouping {
 public:
  Grouping(const Graph &g, const graph::Facts &facts, bool trained, Placement &placement)
      : g_(g), facts_(facts), trained_(trained), p_(placement) {}

  void run(const std::vector<bool> &wanted, const Config &config) {
    Ties tied(g_.values.size());
    tie_moved(tied);
    tie_concats(tied);
    std::vector<std::int32_t> of_root(g_.values.size(), -1);
    for (const ValueId v : in_order(wanted)) {
      std::int32_t &group = of_root[tied.find(index(v))];
      if (group < 0) {
        group = static_cast<std::int32_t>(p_.groups.size());
        p_.groups.push_back({{}, {}, {}, settings_of(v, config), nullptr});
      }
      p_.group[index(v)] = group;
      p_.groups[static_cast<std::size_t>(group)].members.push_back(v);
      if (is_source(v)) p_.groups[static_cast<std::size_t>(group)].sources.push_back(v);
    }
    add_constants();
    refine(config);
    for (Group &group : p_.groups) {
      keep_inputs_whole(group);
      group.fixed = fixed_quantizer(group);
    }
  }

 private:
  bool moving(std::size_t n) const { return p_.nodes[n].integer && p_.nodes[n].role == Role::moving; }
  bool is_concat(std::size_t n) const { return joins(p_, g_.nodes[n], n); }

  /// An average that is told to keep the grid of what it reads.
  bool keeps_grid(std::size_t n) const {
    const NodePlan &plan = p_.nodes[n];
    return plan.integer && plan.settings->pools_keep_grid && is_mean_of_places(g_, facts_, g_.nodes[n]);
  }

  void tie_moved(Ties &tied) const {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      const Node &node = g_.nodes[n];
      if (keeps_grid(n)) tied.unite(index(node.inputs[0]), index(node.outputs[0]));
      if (!moving(n) || is_concat(n)) continue;
      const std::size_t first = index(node.outputs[0]);
      each_output(facts_, node, [&](ValueId v) { tied.unite(index(v), first); });
      each_operand(g_, facts_, node, Role::moving, [&](ValueId v) { tied.unite(index(v), first); });
    }
  }

  /// Integers that only a Concat reads are made on its grid. Where others read them too, the wider range of all that is
  /// joined would be their loss, so they keep a grid of their own.
  void tie_concats(Ties &tied) const {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      const Node &node = g_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue || node.op->reads_shapes) continue;
        if (is_concat(n))
          tied.add_reader(index(node.inputs[i]), static_cast<std::int32_t>(n));
        else if (!keeps_grid(n) && (!moving(n) || !moves_operand(node, i)))
          tied.add_reader(index(node.inputs[i]), Ties::kOthers);
      }
    }
    for (const ValueId v : g_.outputs) tied.add_reader(index(v), Ties::kOthers);
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!is_concat(n)) continue;
      const auto concat = static_cast<std::int32_t>(n);
      const std::size_t result = index(g_.nodes[n].outputs[0]);
      each_operand(g_, facts_, g_.nodes[n], Role::moving, [&](ValueId v) {
        if (tied.read_only_by(index(v), concat))
          tied.unite_with_concat(index(v), result);
        else if (trained_ || is_limited(n))
          tied.unite(index(v), result);
      });
    }
  }

  /// Fewer integers than the type has: a node that computes stops there, and a Concat computes nothing.
  bool is_limited(std::size_t n) const {
    const Attrs &activation = p_.nodes[n].settings->activation;
    return activation.has("quant_min") || activation.has("quant_max");
  }

  std::int32_t maker(ValueId v) const { return facts_.uses.producer[index(v)]; }
  /// The node that computes what v is, or what v is a copy of.
  std::int32_t origin(ValueId v) const {
    const std::int32_t n = maker(v);
    if (n < 0) return n;
    const Node &node = g_.nodes[static_cast<std::size_t>(n)];
    return !trained_ && is_copy(node) ? maker(node.inputs[0]) : n;
  }

  /// Wanted values in the order in which they come to be.
  std::vector<ValueId> in_order(const std::vector<bool> &wanted) const {
    std::vector<ValueId> order;
    for (std::size_t v = 0; v < wanted.size(); ++v)
      if (wanted[v]) order.push_back(static_cast<ValueId>(v));
    return stably_sorted(std::move(order), [&](ValueId a, ValueId b) { return maker(a) < maker(b); });
  }

  /// What a node fills places with; nullptr where it has no such input, or computes it.
  const Tensor *constant_fill(const Node &node) const { return float_constant(g_, input_of(node, node.op->fill)); }

  /// Whether the places that a node fills are to be looked at: their value is computed, or rounded in training. A
  /// constant is one of its group, so that a mask, as -inf in front of a maximum, does not count.
  bool fill_is_new(const Node &node) const {
    if (input_of(node, node.op->fill) == kNoValue) return false;
    const Tensor *fill = constant_fill(node);
    return !fill || (trained_ && std::isfinite(item(*fill)));
  }

  /// Moved integers need no second look; padding with a value of its own, and what a Concat takes from other grids,
  /// bring something new.
  bool is_source(ValueId v) const {
    if (maker(v) < 0) return true;
    const auto n = static_cast<std::size_t>(maker(v));
    const Node &node = g_.nodes[n];
    if (is_concat(n)) {
      bool apart = false;
      each_operand(g_, facts_, node, Role::moving,
                   [&](ValueId part) { apart = apart || p_.group[index(part)] != p_.group[index(v)]; });
      return apart;
    }
    if (keeps_grid(n)) return trained_;  // not moved but computed, and rounded
    return !moving(n) || fill_is_new(node);
  }

  /// The maker's; where no node makes it (a graph input) or the maker stays in float, the first integer reader's; what
  /// holds for all where it is integers only because its name says so.
  Settings settings_of(ValueId v, const Config &config) const {
    if (maker(v) >= 0 && p_.nodes[static_cast<std::size_t>(maker(v))].settings)
      return *p_.nodes[static_cast<std::size_t>(maker(v))].settings;
    for (const std::int32_t n : facts_.uses.consumers[index(v)]) {
      const NodePlan &plan = p_.nodes[static_cast<std::size_t>(n)];
      if (plan.integer) return *plan.settings;
    }
    return config.settings_for_all();
  }

  void add_constants() {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!moving(n)) continue;
      const Node &node = g_.nodes[n];
      auto &constants = p_.groups[static_cast<std::size_t>(p_.group[index(node.outputs[0])])].constants;
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (moves_operand(node, i) && float_constant(g_, node.inputs[i])) constants.push_back(node.inputs[i]);
      if (constant_fill(node) && !trained_) constants.push_back(input_of(node, node.op->fill));
    }
  }

  /// What rules say of tensors by name.
  void refine(const Config &config) {
    for (Group &group : p_.groups) {
      std::vector<std::string_view> names;
      for (const ValueId v : group.members) names.push_back(g_.value(v).name);
      group.settings = config.settings_for(group.settings, names);
    }
  }

  /// Inputs of the model have all bits of their type: no node is there to limit them.
  void keep_inputs_whole(Group &group) const {
    if (std::none_of(group.sources.begin(), group.sources.end(), [&](ValueId v) { return maker(v) < 0; })) return;
    group.settings.activation.erase("quant_min");
    group.settings.activation.erase("quant_max");
  }

  /// A grid that is given; or torch's FixedQParams: the whole range of a bounded function, known without data.
  QuantizerPtr fixed_quantizer(const Group &group) const {
    if (group.settings.activation_observer == "fixed") {
      const QuantizerPtr given = make_observer("fixed", group.settings.activation)->quantizer();
      return std::make_shared<Quantizer>(given->dtype(), given->scheme(), 0, given->scales(), given->zero_points(),
                                         Numerics::onnx);
    }
    const auto averages = std::count_if(group.sources.begin(), group.sources.end(), [&](ValueId v) {
      return maker(v) >= 0 && keeps_grid(static_cast<std::size_t>(maker(v)));
    });
    if (!group.settings.fixed_outputs || static_cast<std::ptrdiff_t>(group.sources.size()) != averages + 1 ||
        !group.constants.empty())
      return nullptr;
    const std::int32_t n = origin(group.sources[0]);
    if (n < 0) return nullptr;
    const std::optional<ops::Clamp> &bounds = g_.nodes[static_cast<std::size_t>(n)].op->bounds;
    if (!bounds) return nullptr;
    const std::string dtype = group.settings.activation.get_string("dtype", "uint8");
    if (dtype != "uint8" && dtype != "int8") return nullptr;
    const qdtype type = dtype == "int8" ? QTN_INT8 : QTN_UINT8;
    const IntegerRange range = given_range(group.settings.activation, "placement").value_or(integer_range(type));
    const auto count = static_cast<std::int64_t>(range.hi - range.lo) + 1;
    const double width = static_cast<double>(bounds->hi) - bounds->lo;
    const auto below_zero = static_cast<std::int64_t>(-bounds->lo / width * static_cast<double>(count));
    return std::make_shared<Quantizer>(type, QTN_PER_TENSOR_AFFINE, 0,
                                       std::vector<double>{width / static_cast<double>(count)},
                                       std::vector<std::int64_t>{range.lo + below_zero}, Numerics::onnx);
  }

  const Graph &g_;
  const graph::Facts &facts_;
  const bool trained_;
  Placement &p_;
};

}  // namespace

bool moves_operand(const Node &node, std::size_t input) { return node.op->moved.holds(input); }

bool joins(const Placement &placement, const Node &node, std::size_t n) {
  const NodePlan &plan = placement.nodes[n];
  return plan.integer && plan.role == Role::moving && node.op->joins;
}

Placement place(const Graph &g, const Config &config, bool trained) {
  const graph::Facts facts(g);
  Placement placement;
  placement.group.assign(g.values.size(), -1);
  for (const Node &node : g.nodes) {
    if (!trained && is_copy(node)) {
      const std::int32_t maker = facts.uses.producer[index(node.inputs[0])];
      const Node &from = maker < 0 ? node : g.nodes[static_cast<std::size_t>(maker)];
      placement.nodes.push_back(
          {.role = Role::floating, .why = "it copies floats", .settings = config.settings_for(from)});
      continue;
    }
    placement.nodes.push_back(plan_of(g, facts, node, config));
  }
  const std::vector<bool> wanted =
      wanted_values(g, facts, placement.nodes, asked_by_hand(g, facts, placement.nodes, config), config, trained);
  Grouping(g, facts, trained, placement).run(wanted, config);
  return placement;
}

}  // namespace qtn::quant
