// SPDX-License-Identifier: Apache-2.0
// Brings products with constants into the one form that has integer arithmetic: x * W + bias, bias one value per
// column.
#pragma once

#include "graph/graph.hpp"

namespace qtn::quant {

/// Gemm: alpha and beta go into constant weights and bias. MatMul of a matrix and constant weights, then Add of a
/// constant vector: Gemm.
void normalize_products(graph::Graph &g);

}  // namespace qtn::quant
