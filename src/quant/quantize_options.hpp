// SPDX-License-Identifier: Apache-2.0
// What qmodel_quantize() is asked for.
#pragma once

#include <cstddef>

#include "core/attrs.hpp"
#include "quant/search/targets.hpp"

namespace qtn::quant {

struct QuantizeOptions {
  bool plain, absorb_bias, correct_bias, feedback, learn_rounding, automatic, sensitivity, histograms;
  double smooth;  ///< 0: not
  Targets targets;
  bool wide;             ///< layers fall back to int16
  std::size_t measured;  ///< samples that are read more than once
};

/// Throws QTN_EINVAL on keys that it does not know, and on values that do not fit or contradict each other.
QuantizeOptions options_of(const Attrs &attrs);

}  // namespace qtn::quant
