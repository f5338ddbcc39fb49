// SPDX-License-Identifier: Apache-2.0
// All of post-training quantization in one call.
#pragma once

#include "quant/prepare.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// Prepares, calibrates on every sample, converts. `attrs` may be nullptr; no keys in this version.
graph::Graph quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                      const Progress &progress);

}  // namespace qtn::quant
