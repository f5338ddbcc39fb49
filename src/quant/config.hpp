// SPDX-License-Identifier: Apache-2.0
// The recipe: which observer and which grid for the activations and weights of which node ("qconfig").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/attrs.hpp"
#include "graph/graph.hpp"
#include "quant/observer.hpp"

namespace qtn::quant {

/// What one node gets.
struct Settings {
  std::string activation_observer;
  std::string weight_observer;
  Attrs activation;            ///< for make_observer
  Attrs weight;                ///< for make_observer; "axis" is added per node
  bool equalize = false;       ///< cross-layer equalization, where both layers have it
  bool fixed_outputs = false;  ///< Sigmoid, HardSigmoid, Softmax and Tanh have scales known beforehand
};

class Config {
 public:
  /// "onnx": as ONNX Runtime's quantize_static, QUInt8 activations, QInt8 weights per channel. "fbgemm": as PyTorch's
  /// default for servers. Throws QTN_EUNSUPPORTED listing these.
  explicit Config(const std::string &name);

  /// Selector: "*", "op:Conv", "name:features.0.*" (glob with * and ?), "node:conv1". Settings nullptr: left in float.
  /// For each key the most specific selector wins (node, name, op, *), among equals the later. Throws QTN_EINVAL on an
  /// unknown selector, operator, key or value, and changes nothing.
  void set(const std::string &selector, const Attrs *settings);

  /// nullopt: the node stays in float.
  std::optional<Settings> settings_for(const graph::Node &node) const;

  const std::string &name() const { return name_; }

 private:
  struct Rule {
    int rank;  // 0 "*", 1 op, 2 name, 3 node
    std::string pattern;
    std::optional<Attrs> attrs;
  };
  static bool matches(const Rule &rule, const graph::Node &node);

  std::string name_;
  Attrs base_;
  std::vector<Rule> rules_;  // by rank, then in the order of set()
};

}  // namespace qtn::quant
