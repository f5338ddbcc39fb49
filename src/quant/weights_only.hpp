// SPDX-License-Identifier: Apache-2.0
// Weights as small integers, everything else in float: for size on disk, without data.
#pragma once

#include "graph/graph.hpp"

namespace qtn::quant {

struct WeightsOnly {
  qdtype dtype = QTN_INT8;      ///< or QTN_INT4
  std::int64_t block_size = 0;  ///< elements that share a scale along the axis that is summed over; 0: a whole channel
};

/// Constant float weights of Conv, Gemm and MatMul (matrices) and tables of embeddings become integers on a symmetric
/// grid, and as int8 the weights of recurrent layers. Where the axis is shorter than a block there is a scale for each
/// output channel or row. Throws QTN_EUNSUPPORTED on a graph that is quantized already.
graph::Graph quantize_weights(const graph::Graph &float_graph, const WeightsOnly &grid);

}  // namespace qtn::quant
