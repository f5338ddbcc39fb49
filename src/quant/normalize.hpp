// SPDX-License-Identifier: Apache-2.0
// Brings products with constants into the one form that has integer arithmetic: x * W + bias, bias one value per
// column.
#pragma once

#include "graph/graph.hpp"

namespace qtn::quant {

/// Gemm: alpha and beta go into constant weights and bias. MatMul of a matrix and constant weights, then Add of a
/// constant vector: Gemm.
void normalize_products(graph::Graph &g);

/// A BatchNormalization of pictures that nothing before it takes up gets a depthwise convolution by ones in front,
/// which then does, and has its name. Returns these names.
std::vector<std::string> precede_norms(graph::Graph &g);

}  // namespace qtn::quant
