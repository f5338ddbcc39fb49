// SPDX-License-Identifier: Apache-2.0
// All of post-training quantization in one call.
#pragma once

#include "quant/prepare.hpp"
#include "quant/quantization_report.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

struct Quantized {
  graph::Graph graph;
  QuantizationReport report;
};

/// Prepares, calibrates on every sample, converts, and keeps what gains on held-back samples. `attrs` (may be nullptr)
/// is what qmodel_quantize lists.
Quantized quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                   const Progress &progress);

}  // namespace qtn::quant
