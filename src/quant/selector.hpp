// SPDX-License-Identifier: Apache-2.0
// Which nodes, tensor or parameters a rule is about.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace qtn::quant {

class Selector {
 public:
  /// From the least to the most specific.
  enum Kind { kAll, kOp, kName, kNode, kTensor, kParameter };

  /// "*", "op:Conv", "name:features.0.*" (glob with * and ?), "node:conv1", "tensor:conv1.out", "parameter:*.scale"
  /// (glob). Throws QTN_EINVAL on another form, one more specific than `most`, and an operator that does not exist.
  /// `who` begins messages.
  explicit Selector(const std::string &text, std::string_view who = "config", Kind most = kTensor);

  Kind kind() const { return kind_; }
  const std::string &text() const { return text_; }
  std::string_view pattern() const { return pattern_; }

  /// Selectors of kTensor and kParameter match no node.
  bool matches(const graph::Node &node) const;

  /// Whether a selector of kParameter matches this name.
  bool matches_parameter(std::string_view name) const;

 private:
  std::string text_, pattern_;
  Kind kind_ = kAll;
};

}  // namespace qtn::quant
