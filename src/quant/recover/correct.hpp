// SPDX-License-Identifier: Apache-2.0
// Corrections of a converted graph that need data: what was lost is measured layer by layer, in the order of the
// network, so that each layer also makes up for those before it.
#pragma once

#include <string>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// Which of the integers around a weight it becomes.
enum class Rounding { nearest, gptq, adaround };

struct Corrections {
  Rounding rounding = Rounding::nearest;
  bool bias = false;      ///< the mean of each output channel becomes that of the float model
  int iterations = 1000;  ///< of AdaRound

  bool operator==(const Corrections &) const = default;

  /// "gptq", "adaround + bias_correction".
  std::string name() const;
};

/// Changes weights and biases of `quantized`, which convert() made of `prepared`. All samples are in memory at once,
/// with what is alive of both graphs: a few dozens are enough.
void correct(const PreparedModel &prepared, graph::Graph &quantized, const Samples &samples, const Corrections &which);

}  // namespace qtn::quant
