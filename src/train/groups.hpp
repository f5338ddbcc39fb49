// SPDX-License-Identifier: Apache-2.0
// Settings of parameters by selector, as PyTorch's optimizers have them by groups.
#pragma once

#include <string>
#include <vector>

#include "core/attrs.hpp"
#include "quant/selector.hpp"
#include "train/network.hpp"

namespace qtn::train {

class Groups {
 public:
  /// "lr_factor", "weight_decay", "frozen" of the parameters that the selector matches: "parameter:GLOB" by their
  /// names, "tensor:NAME" those of the activation's grid, others those that a node reads and that its weights' grid
  /// has. For each key the most specific selector wins, among equals the later. Throws QTN_EINVAL, and then nothing
  /// changed, on an unknown key or value and on a selector of another form or that matches no parameter.
  void set(const std::string &selector, const Attrs &settings, Network &network);

 private:
  struct Rule {
    quant::Selector selector;
    Attrs settings;
    std::vector<std::size_t> parameters;
  };
  std::vector<Rule> rules_;  // from the least to the most specific, then in the order of set()
};

}  // namespace qtn::train
