// SPDX-License-Identifier: Apache-2.0
#include "quant/integer_attention.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/known_shapes.hpp"
#include "ops/common/own_product.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

constexpr int kMostTerms = 8;            ///< between the products
constexpr std::int64_t kWorthIt = 4096;  ///< elements of the keys of a head: packing fewer takes what products save
constexpr float kHides = -1000;          ///< what stands for a score from here down takes no part in a Softmax

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

class Attention {
 public:
  Attention(Graph &g, const graph::NodeFilter &wanted) : g_(g), wanted_(wanted), facts_(g) {}

  void run() {
    for (Node &node : g_.nodes) {
      if (!is_product(node)) continue;
      const Node *softmax = inner(node.inputs[0]);
      if (!softmax || !is_softmax(*softmax)) continue;
      bool centered = true;
      Node *scores = product_of(softmax->inputs[0], 0, centered);
      if (!scores || !wanted_(node) || !wanted_(*scores) || is_small(scores->inputs[1])) continue;
      if (!have_the_same_tokens({scores->inputs[0], scores->inputs[1], node.inputs[1]})) continue;
      become_integer(*scores, centered);
      become_integer(node, false);
    }
  }

 private:
  const Node *maker(ValueId v) const {
    const std::int32_t n = v == kNoValue ? -1 : facts_.uses.producer[index(v)];
    return n < 0 ? nullptr : &g_.nodes[static_cast<std::size_t>(n)];
  }

  /// The node that makes v where only one other reads it and no grid rounds it.
  const Node *inner(ValueId v) const {
    const Node *node = maker(v);
    return node && facts_.uses.single_use(v) && !g_.value(v).quantizer && node->outputs.size() == 1 && !node->clamp
               ? node
               : nullptr;
  }

  bool is_plain(ValueId v) const { return graph::is_activation(g_, facts_, v) && !g_.value(v).quantizer; }

  bool is_product(const Node &node) const {
    return node.op == &ops::kMatMul && is_plain(node.inputs[0]) && is_plain(node.inputs[1]) &&
           facts_.rank_of(node.inputs[0]) != 1 && facts_.rank_of(node.inputs[1]) != 1;
  }

  bool is_softmax(const Node &node) const {
    if (node.op != &ops::kSoftmax) return false;
    const std::int64_t axis = node.attrs.get_int("axis", -1);
    return axis == -1 || axis + 1 == facts_.rank_of(node.outputs[0]);
  }

  bool is_small(ValueId keys) {
    if (!shapes_) shapes_.emplace(g_);
    const Shape *shape = shapes_->of(keys);
    return shape && shape->size() >= 2 && element_count(Shape(std::span(*shape).last(2))) < kWorthIt;
  }

  std::optional<float> number(ValueId v) const {
    const Tensor *t = graph::float_constant(g_, v);
    return t && t->count() == 1 ? std::optional(*t->to_contiguous().as<const float>()) : std::nullopt;
  }

  /// The product of two activations that v is made of by arithmetic on its elements.
  Node *product_of(ValueId v, int terms, bool &centered) const {
    const Node *node = inner(v);
    if (!node || terms > kMostTerms) return nullptr;
    if (is_product(*node)) return const_cast<Node *>(node);
    const std::string_view op = node->op->name;
    if (op == "Reshape") return product_of(node->inputs[0], terms + 1, centered);
    const bool where = op == "Where", scales = op == "Mul" || op == "Div";
    if (!where && !scales && op != "Add" && op != "Sub") return nullptr;
    for (const std::size_t i : {where ? 1 : 0, where ? 2 : 1}) {
      if (i == 1 && (op == "Div" || op == "Sub")) continue;
      Node *found = product_of(node->inputs[i], terms + 1, centered);
      if (!found) continue;
      // A number added to a whole row of scores has to come out as one.
      const std::optional<float> other = number(node->inputs[where ? 3 - i : 1 - i]);
      if (scales || where) centered = centered && other && (!where || *other <= kHides);
      return found;
    }
    return nullptr;
  }

  /// What the layers read that v is made of; false where v is made of a cache, or of nothing that is known.
  bool add_tokens(ValueId v, std::set<ValueId> &tokens, std::set<ValueId> &seen) const {
    if (v == kNoValue || !graph::is_activation(g_, facts_, v) || !seen.insert(v).second) return true;
    const Node *node = maker(v);
    if (!node) return false;
    if (graph::is_linear(*node) || graph::integer_form(g_, *node) == graph::IntegerForm::dynamic) {
      if (!g_.value(node->inputs[1]).is_constant()) return true;  // of positions
      tokens.insert(origin(node->inputs[0]));
      return true;
    }
    return std::ranges::all_of(node->inputs, [&](ValueId input) { return add_tokens(input, tokens, seen); });
  }

  /// Before what leaves elements in their order.
  ValueId origin(ValueId v) const {
    for (const Node *node = maker(v); node && node->op->keeps_order && !node->clamp; node = maker(v))
      v = node->inputs[0];
    return v;
  }

  bool have_the_same_tokens(std::initializer_list<ValueId> operands) const {
    std::optional<std::set<ValueId>> all;
    for (const ValueId v : operands) {
      std::set<ValueId> tokens, seen;
      if (!add_tokens(v, tokens, seen) || tokens.empty()) return false;
      if (all && *all != tokens) return false;
      all = std::move(tokens);
    }
    return true;
  }

  static void become_integer(Node &node, bool centered) {
    node.op = &ops::kDynamicMatMul;
    if (centered) node.attrs.set(ops::kCenteredAttr, std::int64_t{1});
  }

  Graph &g_;
  const graph::NodeFilter &wanted_;
  const graph::Facts facts_;
  std::optional<graph::KnownShapes> shapes_;  ///< once they are asked for
};

}  // namespace

void quantize_attention(Graph &g, const graph::NodeFilter &wanted) { Attention(g, wanted).run(); }

}  // namespace qtn::quant
