// SPDX-License-Identifier: Apache-2.0
// What is suspicious about calibration data.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

class DataCheck {
 public:
  explicit DataCheck(const graph::Graph &g);

  /// The same samples, each of which is looked at when it is first read. They and the check stay with the caller.
  Samples watch(const Samples &samples);

  /// One sentence each, about what has been read: so many samples of so many rows.
  std::vector<std::string> warnings(std::size_t samples, std::size_t rows) const;

 private:
  struct Input {
    std::string name;
    bool seen = false, whole = true;  ///< whole: nothing but integers
    float min = 0, max = 0;
  };

  void see(const std::vector<Tensor> &inputs);

  std::vector<Input> inputs_;
  std::set<std::size_t> seen_;  ///< numbers of samples
};

}  // namespace qtn::quant
