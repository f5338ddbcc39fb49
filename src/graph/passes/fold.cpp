// SPDX-License-Identifier: Apache-2.0
// Passes that compute at load what does not depend on the input.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "graph/budget.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/passes/affine.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

bool is(const Node &node, std::string_view op) { return node.op->name == op; }

std::vector<bool> outputs_of(const Graph &g) {
  std::vector<bool> is_output(g.values.size(), false);
  for (const ValueId v : g.outputs) is_output[static_cast<std::size_t>(v)] = true;
  return is_output;
}

/// What readers of a value read instead.
class Aliases {
 public:
  explicit Aliases(std::size_t values) : of_(values) { std::iota(of_.begin(), of_.end(), ValueId{0}); }

  ValueId operator()(ValueId v) {
    if (v == kNoValue) return v;
    ValueId end = v;
    while (of(end) != end) end = of(end);
    while (of(v) != end) v = std::exchange(of(v), end);  // so that long chains are walked once
    return end;
  }
  void set(ValueId v, ValueId to) { of(v) = to; }

 private:
  ValueId &of(ValueId v) { return of_[static_cast<std::size_t>(v)]; }
  std::vector<ValueId> of_;
};

/// A BatchNormalization on its own: Mul then Add of constants shaped [C,1,...] for the rank of its input.
void split(Graph &g, std::vector<Node> &nodes, const Node &bn, const Affine &a, std::size_t spatial_rank) {
  Shape shape{static_cast<std::int64_t>(a.factor.size())};
  for (std::size_t i = 0; i < spatial_rank; ++i) shape.push_back(1);
  Value between;
  between.name = bn.name + "_scaled";
  between.dtype = QTN_FLOAT32;
  const ValueId factor =
      g.add_constant(bn.name + "_factor", Tensor::from<float>(QTN_FLOAT32, shape, std::span<const float>(a.factor)));
  const ValueId offset =
      g.add_constant(bn.name + "_offset", Tensor::from<float>(QTN_FLOAT32, shape, std::span<const float>(a.offset)));
  const ValueId scaled = g.add_value(std::move(between));
  nodes.push_back({bn.name + "_mul", ops::find_op("Mul"), {}, {bn.inputs[0], factor}, {scaled}, {}});
  nodes.push_back({bn.name, ops::find_op("Add"), {}, {scaled, offset}, {bn.outputs[0]}, bn.clamp});
}

/// Weights on a grid that a Transpose turns, as PyTorch writes linear layers, are turned now: scales go with them.
bool turn_weights(Graph &g, const Node &node, const std::vector<bool> &is_output) {
  if (!is(node, "Transpose") || !g.value(node.inputs[0]).is_constant() || !g.value(node.inputs[0]).quantizer)
    return false;
  Value &y = g.value(node.outputs[0]);
  if (y.quantizer || is_output[static_cast<std::size_t>(node.outputs[0])]) return false;
  const Tensor &x = g.value(node.inputs[0]).constant;
  std::vector<std::int64_t> perm = node.attrs.get_ints("perm");
  if (perm.empty())
    for (std::size_t i = x.rank(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  const auto rank = static_cast<std::int64_t>(x.rank());
  const auto inside = [&](std::int64_t axis) { return axis >= -rank && axis < rank; };
  if (perm.size() != x.rank() || !std::all_of(perm.begin(), perm.end(), inside)) return false;
  y.constant = x.permute(std::vector<int>(perm.begin(), perm.end())).to_contiguous();
  y.quantizer = y.constant.quantizer();
  y.dtype = QTN_FLOAT32;
  y.shape = y.constant.shape();
  y.origin = original_name(g.value(node.inputs[0]));
  return true;
}

}  // namespace

void fold_constants(Graph &g) {
  const std::vector<bool> is_output = outputs_of(g);
  FoldBudget budget(constant_bytes(g));
  // A node that makes an output of the graph becomes a copy of a constant, which others read.
  std::vector<ValueId> constant_of(g.values.size(), kNoValue);
  const auto makes_output = [&](const Node &node) {
    return std::ranges::any_of(node.outputs,
                               [&](ValueId v) { return v != kNoValue && is_output[static_cast<std::size_t>(v)]; });
  };
  for (Node &node : g.nodes) {
    for (ValueId &v : node.inputs)
      if (v != kNoValue && constant_of[static_cast<std::size_t>(v)] != kNoValue)
        v = constant_of[static_cast<std::size_t>(v)];
    const bool foldable = std::all_of(node.inputs.begin(), node.inputs.end(),
                                      [&](ValueId v) { return v == kNoValue || plain_constant(g, v); }) &&
                          !node.clamp && std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
                            return v == kNoValue || !g.value(v).quantizer;
                          });
    const bool copies = makes_output(node);
    if (copies && (node.outputs.size() > 1 || node.op == &ops::kIdentity)) continue;
    if (turn_weights(g, node, is_output) || !foldable || !node.bodies.empty() || ops::as_custom(*node.op)) continue;
    std::vector<const Tensor *> operands;
    for (const ValueId v : node.inputs) operands.push_back(v == kNoValue ? nullptr : &g.value(v).constant);
    try {
      const ops::Call call{node.attrs, operands, node.outputs.size()};
      if (node.op->make ? !budget.take(node, operands) : !budget.take(node, operands, ops::infer_op(*node.op, call)))
        continue;
      std::vector<Tensor> results = ops::run_op(*node.op, call);
      if (copies) {
        const ValueId y = node.outputs[0];
        node.op = &ops::kIdentity;
        node.attrs = {};
        node.inputs = {g.add_constant(cat(g.value(y).name, "_constant"), results[0].to_contiguous())};
        constant_of[static_cast<std::size_t>(y)] = node.inputs[0];
        continue;
      }
      for (std::size_t o = 0; o < results.size(); ++o) {
        if (node.outputs[o] == kNoValue) continue;
        Value &value = g.value(node.outputs[o]);
        value.constant = results[o].to_contiguous();
        value.dtype = value.constant.dtype();
        value.shape = value.constant.shape();
      }
      if (results.size() != 1 || node.inputs.empty() || node.inputs[0] == kNoValue) continue;
      const Value &first = g.value(node.inputs[0]);
      Value &only = g.value(node.outputs[0]);
      const bool moves = ops::moves(*node.op, node.attrs);
      if (moves) only.origin = original_name(first);
      if (moves || is(node, "Cast")) only.file_dtype = first.file_dtype;
    } catch (const Error &e) {
      fail(e.status(), "node \"", node.name, "\": ", e.what());
    }
  }
  std::erase_if(g.nodes, [&](const Node &node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId v) { return v == kNoValue || g.value(v).is_constant(); });
  });
  remove_dead(g);
}

bool is_identity(const Graph &g, const Node &node) {
  if (node.clamp) return false;
  const ValueId training = input_of(node, 2);
  return is(node, "Identity") || (is(node, "Dropout") && (training == kNoValue || g.value(training).is_constant()));
}

namespace {

/// By node: a Cast to the type, or a Reshape or Expand to the shape, that the operand has in every run.
std::vector<bool> idle_nodes(const Graph &g) {
  std::vector<bool> idle(g.nodes.size(), false);
  const auto may_be_idle = [](const Node &node) {
    return (is(node, "Cast") || is(node, "Reshape") || is(node, "Expand")) && !node.clamp;
  };
  if (std::none_of(g.nodes.begin(), g.nodes.end(), may_be_idle)) return idle;
  const Facts facts(g);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    if (!may_be_idle(node)) continue;
    const auto &x = facts.types[static_cast<std::size_t>(node.inputs[0])];
    const auto &y = facts.types[static_cast<std::size_t>(node.outputs[0])];
    idle[n] = x && y && x->dtype == y->dtype && (is(node, "Cast") || (!facts.open && x->shape == y->shape));
  }
  return idle;
}

}  // namespace

void remove_identities(Graph &g) {
  const std::vector<bool> is_output = outputs_of(g), idle = idle_nodes(g);
  std::vector<std::int32_t> producer = Uses(g).producer;
  std::vector<bool> removed(g.nodes.size(), false);
  Aliases aliases(g.values.size());
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    if (!is_identity(g, node) && !idle[n]) continue;
    const ValueId from = node.outputs[0], to = aliases(node.inputs[0]);
    if (g.value(from).quantizer || node.outputs.size() > 1) continue;
    if (is_output[static_cast<std::size_t>(from)]) {
      // The graph's output keeps its name, so its maker must write it; an input or a constant cannot be renamed.
      const std::int32_t maker = producer[static_cast<std::size_t>(to)];
      if (maker < 0 || is_output[static_cast<std::size_t>(to)] || g.value(to).quantizer) continue;
      std::vector<ValueId> &made = g.nodes[static_cast<std::size_t>(maker)].outputs;
      std::replace(made.begin(), made.end(), to, from);
      producer[static_cast<std::size_t>(from)] = maker;
      aliases.set(to, from);
    } else {
      aliases.set(from, to);
    }
    removed[n] = true;
  }
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return removed[n++]; });
  for (Node &node : g.nodes) std::ranges::transform(node.inputs, node.inputs.begin(), std::ref(aliases));
  remove_dead(g);
}

namespace {

/// What becomes of normalizations that nothing before them takes up.
enum class Alone { split, left };

void fold_norms(Graph &g, const NodeFilter &taken, Alone alone) {
  const Uses uses(g);
  std::vector<Node> nodes;
  std::vector<std::int32_t> place(g.nodes.size(), -1);  // where each old node stands in `nodes`
  const std::size_t old_count = g.nodes.size();
  for (std::size_t n = 0; n < old_count; ++n) {
    const Node node = g.nodes[n];
    if (is(node, "BatchNormalization") && node.outputs.size() == 1 && constant_parameters(g, node) && taken(node)) {
      const ValueId x = node.inputs[0];
      const Affine a = affine_of(g, node);
      const std::int32_t maker = uses.producer[static_cast<std::size_t>(x)];
      if (maker >= 0 && uses.single_use(x) && !g.value(x).quantizer && place[static_cast<std::size_t>(maker)] >= 0) {
        Node &linear = nodes[static_cast<std::size_t>(place[static_cast<std::size_t>(maker)])];
        if (linear.outputs[0] == x && taken(linear) && fold_into(g, linear, a)) {
          linear.outputs[0] = node.outputs[0];
          linear.clamp = node.clamp;
          place[n] = place[static_cast<std::size_t>(maker)];
          continue;
        }
      }
      const std::optional<Shape> shape = g.value(x).shape;
      if (alone == Alone::split && shape && shape->size() >= 2) {
        split(g, nodes, node, a, shape->size() - 2);
        continue;
      }
    }
    place[n] = static_cast<std::int32_t>(nodes.size());
    nodes.push_back(node);
  }
  g.nodes = std::move(nodes);
  remove_dead(g);
}

bool any(const Node &) { return true; }

}  // namespace

void fold_batch_norms(Graph &g) { fold_norms(g, any, Alone::split); }

void fold_batch_norms(Graph &g, const NodeFilter &only) { fold_norms(g, only, Alone::left); }

void fold_preceded_batch_norms(Graph &g) { fold_norms(g, any, Alone::left); }

}  // namespace qtn::graph
