// SPDX-License-Identifier: Apache-2.0
// The fewest layers to leave in float so that the rest may be quantized.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// Of what the quantized graph answers in integers against the float one, all outputs together.
double sqnr_db(const graph::Graph &real, const graph::Graph &quantized, const Samples &samples);

/// The same model and observers with some nodes configured to stay in float.
Prepared leave_in_float(const Prepared &prepared, const std::vector<std::string> &nodes);

struct Precision {
  struct Layer {
    std::string node;
    double alone_db;  ///< the outputs' SQNR where only this node is quantized
  };
  std::vector<Layer> in_float;  ///< those that cost most first
  double sqnr_db = 0;           ///< of the outputs of the converted model on the samples
};

/// Ranks the nodes by what each costs alone, takes the shortest run of the worst with which the outputs reach
/// `target_db`, and gives back those that turn out not to be needed. `prepared` (calibrated) is changed to leave the
/// nodes in float. Throws QTN_EUNSUPPORTED where not even a model without quantization reaches the target.
Precision reach(Prepared &prepared, const Samples &samples, double target_db);

}  // namespace qtn::quant
