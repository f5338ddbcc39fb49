// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/quantize_attention.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/known_shapes.hpp"
#include "graph/pattern.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::graph {
namespace {

constexpr std::size_t kMostTerms = 4;    ///< between the products, which sessions run as one step
constexpr std::int64_t kWorthIt = 8192;  ///< elements of the keys of a head: packing fewer takes what products save
constexpr float kHides = -1000;          ///< what stands for a score from here down takes no part in a Softmax

class Attention {
 public:
  using ModeOf = std::function<AttentionMode(const Node &)>;

  Attention(Graph &g, const ModeOf &mode_of) : g_(g), mode_of_(mode_of), facts_(g) {}

  void run() {
    for (Node &node : g_.nodes) {
      if (!is_product(node)) continue;
      const Node *softmax = inner(node.inputs[0]);
      if (!softmax || !is_softmax(*softmax)) continue;
      Terms terms;
      Node *scores = product_of(softmax->inputs[0], terms);
      if (!scores) continue;
      const AttentionMode mode = std::min(mode_of_(node), mode_of_(*scores));
      if (mode == AttentionMode::in_float) continue;
      if (mode == AttentionMode::automatic && (!is_large(scores->inputs[1]) || separates_tokens(terms))) continue;
      if (!have_the_same_tokens({scores->inputs[0], scores->inputs[1], node.inputs[1]})) continue;
      become_integer(*scores, terms.keep_rows);
      become_integer(node, false);
    }
  }

 private:
  const Node *maker(ValueId v) const { return maker_of(g_, facts_.uses, v); }
  const Node *inner(ValueId v) const { return inner_of(g_, facts_.uses, v); }

  bool is_plain(ValueId v) const { return is_activation(g_, facts_, v) && !g_.value(v).quantizer; }

  bool is_product(const Node &node) const {
    return node.op == &ops::kMatMul && is_plain(node.inputs[0]) && is_plain(node.inputs[1]) &&
           facts_.rank_of(node.inputs[0]) != 1 && facts_.rank_of(node.inputs[1]) != 1;
  }

  bool is_softmax(const Node &node) const {
    if (node.op != &ops::kSoftmax) return false;
    const std::int64_t axis = node.attrs.get_int("axis", -1), rank = facts_.rank_of(node.outputs[0]);
    return axis == -1 || (rank > 0 && axis == rank - 1);
  }

  bool is_large(ValueId keys) {
    if (!shapes_) shapes_.emplace(g_);
    const Shape *shape = shapes_->of(keys);
    return shape && shape->size() >= 2 && element_count(Shape(std::span(*shape).last(2))) >= kWorthIt;
  }

  /// What happens to scores on their way to Softmax.
  struct Terms {
    bool keep_rows = true;          ///< a number added to a whole row comes out as one
    std::vector<ValueId> others{};  ///< operands that are not scores
  };

  /// A matrix of tokens by tokens, which an input may hold.
  bool is_square(ValueId v) const {
    const Shape *shape = shapes_->of(v);
    if (!shape || shape->size() < 2) return false;
    const std::int64_t rows = (*shape)[shape->size() - 2], columns = shape->back();
    return rows == columns && rows > 1;
  }

  /// Whether some term is made of a matrix that hides keys from some queries, or of a comparison of places. Asked after
  /// is_large().
  bool separates_tokens(const Terms &terms) const {
    std::set<ValueId> seen;
    return std::ranges::any_of(terms.others, [&](ValueId v) { return separates_tokens(v, seen); });
  }

  bool separates_tokens(ValueId v, std::set<ValueId> &seen) const {
    if (v == kNoValue || !seen.insert(v).second) return false;
    if (g_.value(v).is_constant()) return hides_some(g_.value(v).constant);
    const Node *node = maker(v);
    if (!node) return is_square(v);
    if (is_linear(*node)) return false;
    constexpr std::string_view kOfPlaces[] = {"Trilu", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
    return std::ranges::find(kOfPlaces, node->op->name) != std::end(kOfPlaces) ||
           std::ranges::any_of(node->inputs, [&](ValueId input) { return separates_tokens(input, seen); });
  }

  static bool hides_some(const Tensor &t) {
    if (t.rank() < 2 || t.dim(t.rank() - 1) < 2 || t.dim(t.rank() - 2) < 2 || t.quantized()) return false;
    const Tensor all = t.to_contiguous();
    const auto any = [&](const auto *first, const auto &hides) {
      return std::any_of(first, first + all.count(), hides);
    };
    if (t.dtype() == QTN_BOOL) return any(all.as<const bool>(), [](bool shown) { return !shown; });
    return t.dtype() == QTN_FLOAT32 && any(all.as<const float>(), [](float score) { return score <= kHides; });
  }

  /// The product of two activations that v is made of by arithmetic on its elements.
  Node *product_of(ValueId v, Terms &terms) const {
    const Node *node = inner(v);
    if (!node) return nullptr;
    if (is_product(*node)) return const_cast<Node *>(node);
    const std::string_view op = node->op->name;
    if (op == "Reshape") return product_of(node->inputs[0], terms);
    const bool where = op == "Where", scales = op == "Mul" || op == "Div";
    if (!where && !scales && op != "Add" && op != "Sub") return nullptr;
    for (const std::size_t i : {where ? 1 : 0, where ? 2 : 1}) {
      if (i == 1 && (op == "Div" || op == "Sub")) continue;
      Node *found = product_of(node->inputs[i], terms);
      if (!found || terms.others.size() == kMostTerms) continue;
      const ValueId other = node->inputs[where ? 3 - i : 1 - i];
      const std::optional<double> by = number_of(g_, other, kAnyRank);
      if (scales || where) terms.keep_rows = terms.keep_rows && by && (!where || *by <= kHides);
      terms.others.push_back(where ? node->inputs[0] : other);
      return found;
    }
    return nullptr;
  }

  /// What the layers read that v is made of; false where v is made of a cache, or of nothing that is known.
  bool add_tokens(ValueId v, std::set<ValueId> &tokens, std::set<ValueId> &seen) const {
    if (v == kNoValue || !is_activation(g_, facts_, v) || !seen.insert(v).second) return true;
    const Node *node = maker(v);
    if (!node) return false;
    if (is_linear(*node) || integer_form(g_, *node) == IntegerForm::dynamic) {
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
  const ModeOf &mode_of_;
  const Facts facts_;
  std::optional<KnownShapes> shapes_;  ///< once they are asked for
};

}  // namespace

void quantize_attention(Graph &g, const std::function<AttentionMode(const Node &)> &mode_of) {
  Attention(g, mode_of).run();
}

}  // namespace qtn::graph
