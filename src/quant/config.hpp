// SPDX-License-Identifier: Apache-2.0
// The recipe: which observer and which grid for the activations and weights of which node ("qconfig").
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/attrs.hpp"
#include "graph/passes/quantize_attention.hpp"
#include "quant/observe/observer.hpp"
#include "quant/selector.hpp"

namespace qtn::quant {

/// How training moves a grid. docs/training.md says what is learned.
enum class Learning {
  none,
  lsq,       ///< the scale
  lsq_plus,  ///< scale and zero point
  pact,      ///< the bounds of the range that the grid is over
  amax,      ///< the largest magnitude on a symmetric grid
};

/// What is quantized of a layer.
enum class Mode {
  fixed,         ///< "static": activations on grids found before, and weights
  dynamic,       ///< activations on grids of their own values at every run, and weights
  weights_only,  ///< weights; activations stay in float
};

/// What one node gets.
struct Settings {
  Mode mode = Mode::fixed;
  std::string activation_observer;
  std::string weight_observer;
  Attrs activation;       ///< for make_observer
  Attrs weight;           ///< for make_observer; "axis" is added per node
  double margin = 0;      ///< by which part grids reach farther than what is observed, to both sides of zero
  bool equalize = false;  ///< cross-layer equalization, where both layers have it
  graph::AttentionMode attention = graph::AttentionMode::in_float;
  bool fixed_outputs = false;     ///< Sigmoid, HardSigmoid, Softmax and Tanh have scales known beforehand, as where every
                                  ///< operator is quantized by itself
  bool quantize_outputs = false;  ///< what it makes for the model's outputs becomes integers
  bool replace_relu6 = false;     ///< ReLU6 becomes Relu
  bool float_bias = false;        ///< biases stay float32
  bool pools_keep_grid = false;   ///< averages are on the grid of what they read, as in PyTorch
  bool fused_fake_quant = false;  ///< trained as by PyTorch's FusedMovingAvgObsFakeQuantize
  Learning activation_learning = Learning::none;  ///< of grids that are not fixed
  Learning weight_learning = Learning::none;
  Attrs keys;  ///< what all of this follows from, by the keys of Config::set
};

struct Rule {
  Selector selector;
  std::optional<Attrs> settings;  ///< nullopt: left in float
};

class Config {
 public:
  /// Throws QTN_EUNSUPPORTED on a name that is no recipe, listing those there are.
  explicit Config(const std::string &name);

  /// Settings nullptr: left in float. For each key the most specific selector wins, among equals the later. Throws
  /// QTN_EINVAL on an unknown selector, operator, key or value, QTN_EUNSUPPORTED on a grid that is not offered, and
  /// changes nothing.
  void set(const std::string &selector, const Attrs *settings);

  /// Such nodes have this mode, unless a rule leaves them in float or says theirs.
  void suggest(std::string_view mode, bool (*nodes)(const graph::Node &)) {
    suggestions_.push_back({std::string(mode), nodes});
  }

  /// nullopt: the node stays in float.
  std::optional<Settings> settings_for(const graph::Node &node) const;

  /// The settings of the node that makes some tensors of one grid, as rules for these tensors refine them.
  Settings settings_for(const Settings &maker, std::span<const std::string_view> tensors) const;

  /// What holds where no node says more: the recipe and what is set for "*", except leaving in float.
  Settings settings_for_all() const;

  /// Whether a tensor becomes integers though no node reads it so, where its rules say anything of it.
  bool quantizes(std::string_view tensor, bool unless_said) const;

  /// Whether a rule is for this tensor.
  bool names_tensor(std::string_view tensor) const;

  /// Whether a rule is for this node or its operator.
  bool selects(const graph::Node &node) const;

  /// Whether any rule names the key.
  bool says(std::string_view key) const;

  const std::string &name() const { return name_; }
  const std::vector<Rule> &rules() const { return rules_; }

 private:
  void check(const Attrs &settings) const;

  std::string name_;
  Attrs base_;
  struct Suggestion {
    std::string mode;
    bool (*nodes)(const graph::Node &);
  };
  std::vector<Suggestion> suggestions_;
  std::vector<Rule> rules_;  // from the least to the most specific, then in the order of set()
};

}  // namespace qtn::quant
