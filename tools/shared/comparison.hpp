// SPDX-License-Identifier: Apache-2.0
// How far the outputs of one model are from those of another, which is right.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/model.hpp"

namespace tool {

/// Sums over all samples, from which the figures of one output follow.
struct Difference {
  double signal = 0, noise = 0, other = 0, product = 0, largest = 0;

  void add(const std::vector<double> &a, const std::vector<double> &b);
  double sqnr_db() const;  ///< of equal outputs 999: JSON has no infinity
  double cosine() const;
};

/// Which class wins, for outputs [batch, classes].
struct Top1 {
  size_t samples = 0, agree = 0, right_a = 0, right_b = 0;

  void add(const std::vector<double> &a, const std::vector<double> &b, size_t classes,
           const std::vector<int64_t> &labels);
  double fraction(size_t count) const { return static_cast<double>(count) / static_cast<double>(samples); }
};

struct Comparison {
  explicit Comparison(const qmodel *model);

  /// Outputs of both models for the same inputs. `labels` of all samples, or none.
  void add(const std::vector<Tensor> &a, const std::vector<Tensor> &b, const std::vector<int64_t> &labels);

  std::vector<std::string> names;
  std::vector<Difference> outputs;
  Top1 top1;
  bool has_top1 = true;
};

/// "outputs" and "top1_agreement", as docs/command.md has them.
nlohmann::ordered_json json_of(const Comparison &comparison);

}  // namespace tool
