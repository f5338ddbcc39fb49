// SPDX-License-Identifier: Apache-2.0
// Which nodes, or which tensor, a rule of a configuration is about.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace qtn::quant {

class Selector {
 public:
  /// From the least to the most specific.
  enum Kind { kAll, kOp, kName, kNode, kTensor };

  /// "*", "op:Conv", "name:features.0.*" (glob with * and ?), "node:conv1", "tensor:conv1.out". Throws QTN_EINVAL on
  /// another form and on an operator that does not exist.
  explicit Selector(const std::string &text);

  Kind kind() const { return kind_; }
  const std::string &text() const { return text_; }
  std::string_view pattern() const { return pattern_; }

  /// Of kTensor: of no node.
  bool matches(const graph::Node &node) const;

 private:
  std::string text_, pattern_;
  Kind kind_ = kAll;
};

}  // namespace qtn::quant
