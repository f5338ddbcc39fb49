// SPDX-License-Identifier: Apache-2.0
// Own functions in files: their nodes in the place of a call, since not every engine takes a file's functions, and calls in
// the place of such nodes, also where somebody else has put these there.
#include <algorithm>
#include <map>
#include <set>

#include "graph/pattern.hpp"
#include "onnx/own_functions.hpp"

namespace qtn::onnx {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

/// Names are short, since a call has some twenty nodes; what follows from constants alone is there once for all calls.
class Inlining {
 public:
  explicit Inlining(Graph &g) : g_(g) {}

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes)
      if (const auto function = function_of(node))
        inlined(node, *function);
      else
        g_.nodes.push_back(std::move(node));
    if (calls_ > 0) graph::remove_dead(g_);
  }

 private:
  void inlined(const Node &call, const std::string &function) {
    const Graph body = function_body(function);
    const std::string kind = function.substr(function.rfind('_') + 1), own = kind + std::to_string(++calls_);
    std::vector<ValueId> here(body.values.size(), kNoValue);
    std::vector<bool> is_common(body.values.size());
    for (std::size_t i = 0; i < body.inputs.size(); ++i) here[at(body.inputs[i])] = call.inputs[i];
    for (std::size_t o = 0; o < call.outputs.size(); ++o) here[at(body.outputs[o])] = call.outputs[o];
    for (std::size_t v = 0; v < body.values.size(); ++v)
      if (body.values[v].is_constant()) {
        const auto [common, is_new] = common_.try_emplace(kind + "_" + body.values[v].name);
        if (is_new) common->second = g_.add_constant(common->first, body.values[v].constant);
        here[v] = common->second;
        is_common[v] = true;
      }
    for (Node node : body.nodes) {
      const std::size_t y = at(node.outputs[0]);
      is_common[y] = std::ranges::all_of(node.inputs, [&](ValueId v) { return is_common[at(v)]; });
      node.name = (is_common[y] ? kind : own) + "_" + body.values[y].name;
      if (is_common[y]) {
        const auto [common, is_new] = common_.try_emplace(node.name);
        if (is_new) common->second = add(node.name);
        here[y] = common->second;
        if (!is_new) continue;
      } else if (here[y] == kNoValue) {
        here[y] = add(node.name);
      }
      for (std::vector<ValueId> *values : {&node.inputs, &node.outputs})
        for (ValueId &v : *values) v = here[at(v)];
      g_.nodes.push_back(std::move(node));
    }
  }

  ValueId add(const std::string &name) {
    graph::Value value;
    value.name = g_.names.make(g_.values, name);
    return g_.add_value(std::move(value));
  }

  Graph &g_;
  std::map<std::string, ValueId> common_;
  std::size_t calls_ = 0;
};

/// The nodes of a function in a graph.
class Match {
 public:
  Match(const Graph &g, const graph::Uses &uses, const Graph &body, const graph::Uses &body_uses)
      : g_(g), uses_(uses), body_(body), body_uses_(body_uses), here_(body.values.size(), kNoValue) {}

  /// Whether `last` ends what makes the first output, and everything before it is there.
  bool ends_at(const Node &last) { return is_made(*graph::maker_of(body_, body_uses_, body_.outputs[0]), last); }

  /// Outputs that none of the nodes before the first one reads.
  void find_other_outputs() {
    for (const ValueId output : body_.outputs)
      if (here_[at(output)] == kNoValue) find_reader(output);
  }

  std::vector<ValueId> found(const std::vector<ValueId> &values) const {
    std::vector<ValueId> ids;
    for (const ValueId v : values) ids.push_back(here_[at(v)]);
    return ids;
  }

 private:
  bool is_made(const Node &wanted, const Node &node) {
    if (node.op != wanted.op || node.clamp || !are_equal(node.attrs, wanted.attrs) ||
        node.inputs.size() != wanted.inputs.size() || node.outputs.size() != 1)
      return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!is(wanted.inputs[i], node.inputs[i])) return false;
    here_[at(wanted.outputs[0])] = node.outputs[0];
    return true;
  }

  bool is(ValueId wanted, ValueId v) {
    if (v == kNoValue) return false;
    // Each reader may have a constant of its own.
    if (const Tensor &constant = body_.value(wanted).constant; constant.has_data())
      return are_equal(constant, g_.value(v).constant);
    if (here_[at(wanted)] != kNoValue) return v == here_[at(wanted)];
    if (const Node *maker = graph::maker_of(body_, body_uses_, wanted)) {
      const Node *node = graph::exact_maker_of(g_, uses_, v);
      if (!node || !is_made(*maker, *node)) return false;
    }
    here_[at(wanted)] = v;
    return true;
  }

  /// Those of bodies are integers.
  static bool are_equal(const Attrs &a, const Attrs &wanted) {
    return a.size() == wanted.size() &&
           std::equal(a.begin(), a.end(), wanted.begin(), [](const auto &x, const auto &y) {
             const auto *value = std::get_if<std::int64_t>(&x.second);
             return x.first == y.first && value && *value == std::get<std::int64_t>(y.second);
           });
  }

  static bool are_equal(const Tensor &a, const Tensor &b) {
    return b.has_data() && !b.quantized() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
           std::equal(a.as<char>(), a.as<char>() + a.nbytes(), b.to_contiguous().as<char>());
  }

  void find_reader(ValueId output) {
    const Node &wanted = *graph::maker_of(body_, body_uses_, output);
    for (const std::int32_t n : uses_.consumers[at(here_[at(wanted.inputs[0])])])
      if (is_made(wanted, g_.nodes[static_cast<std::size_t>(n)])) return;
  }

  const Graph &g_;
  const graph::Uses &uses_;
  const Graph &body_;
  const graph::Uses &body_uses_;
  std::vector<ValueId> here_;  ///< by value of the body
};

class Recognition {
 public:
  explicit Recognition(Graph &g) : g_(g), uses_(g), calls_(g.nodes.size()), is_replaced_(g.nodes.size()) {}

  void run() {
    bool any = false;
    std::set<const ops::OpDef *> operators;
    for (const Node &node : g_.nodes) operators.insert(node.op);
    for (const std::string &function : function_names()) {
      const auto wanted = function_operators(function);
      if (!std::ranges::all_of(wanted, [&](const ops::OpDef *op) { return operators.contains(op); })) continue;
      const Graph body = function_body(function);
      const graph::Uses body_uses(body);
      const Node &last = *graph::maker_of(body, body_uses, body.outputs[0]);
      for (const Node &node : g_.nodes) {
        if (node.op != last.op) continue;
        Match match(g_, uses_, body, body_uses);
        // One of the nodes that end the same is in a call: readers are looked through once, not for each of these.
        if (!match.ends_at(node) || are_made_by_calls(match.found(body.outputs))) continue;
        match.find_other_outputs();
        if (are_made_by_calls(match.found(body.outputs))) continue;
        replace(function, match.found(body.inputs), match.found(body.outputs));
        any = true;
      }
    }
    if (!any) return;
    std::vector<Node> nodes;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (calls_[n]) nodes.push_back(std::move(*calls_[n]));
      if (!is_replaced_[n]) nodes.push_back(std::move(g_.nodes[n]));
    }
    g_.nodes = std::move(nodes);
    graph::remove_dead(g_);
  }

 private:
  std::size_t maker_of(ValueId v) const { return static_cast<std::size_t>(uses_.producer[at(v)]); }

  bool are_made_by_calls(const std::vector<ValueId> &outputs) const {
    return std::ranges::any_of(outputs, [&](ValueId v) { return v != kNoValue && is_replaced_[maker_of(v)]; });
  }

  /// The call stands where the first of its outputs was made.
  void replace(const std::string &function, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
    std::size_t first = g_.nodes.size();
    for (const ValueId v : outputs) {
      if (v == kNoValue) continue;
      is_replaced_[maker_of(v)] = true;
      first = std::min(first, maker_of(v));
    }
    while (outputs.back() == kNoValue) outputs.pop_back();
    const FunctionMeaning meaning = *function_meaning(ops::kOwnDomain, function);
    calls_[first] = Node{g_.nodes[first].name, meaning.op, meaning.attrs, std::move(inputs), std::move(outputs), {}};
  }

  Graph &g_;
  const graph::Uses uses_;
  std::vector<std::optional<Node>> calls_;  ///< by the node in front of which they stand
  std::vector<bool> is_replaced_;
};

}  // namespace

void inline_own_functions(Graph &g) { Inlining(g).run(); }

void recognize_own_functions(Graph &g) { Recognition(g).run(); }

}  // namespace qtn::onnx
