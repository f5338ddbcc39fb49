// SPDX-License-Identifier: Apache-2.0
// What the outputs of a quantized model are to reach beside those of the float one, and what they do reach.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.hpp"
#include "quant/samples.hpp"
#include "quant/search/accuracy.hpp"

namespace qtn::quant {

struct Targets {
  std::optional<double> sqnr_db;  ///< of each output
  std::optional<double> top1;     ///< part of the rows of the first output whose largest value is where it is in float

  bool any() const { return sqnr_db || top1; }

  /// `reached` has a value where there is a target.
  bool met_by(const Targets &reached) const {
    return (!sqnr_db || *reached.sqnr_db >= *sqnr_db) && (!top1 || *reached.top1 >= *top1);
  }
};

/// Beside one float model.
class Goal {
 public:
  /// The ratio is that of `measured`; `all` count for the largest values, which tell little on a few. Graph and samples
  /// stay with the caller. Throws QTN_EUNSUPPORTED where the first output has no rows of floats to look at.
  Goal(const graph::Graph &real, const Samples &measured, const Samples &all, const Targets &targets);

  /// What there is a target for.
  Targets reached(const graph::Graph &quantized) const;

  bool met_by(const graph::Graph &quantized) const { return targets_.met_by(reached(quantized)); }

  /// What all outputs together lose, of as many of the measured samples as it takes to tell layers apart.
  Noise noise_of(const graph::Graph &quantized) const;

  /// The inputs of one of the measured samples.
  std::vector<Tensor> sample() const { return measured_.read(0); }

 private:
  Goal(const graph::Graph &real, const std::shared_ptr<const runtime::Session> &exact, const Samples &measured,
       const Samples &all, const Targets &targets);

  const AccuracyMeter meter_;
  const Samples &measured_, &all_;
  const Targets targets_;
  std::vector<std::int64_t> largest_;  // of each row in float
};

}  // namespace qtn::quant
