// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeMatMul and DynamicQuantizeConv in files, which have ONNX's own operators for them: DynamicQuantizeLinear
// of x, MatMulInteger or ConvInteger, and their sums as floats, `float(sums) * (scale of x * scales) + bias`, bit for bit
// the same. Runtimes know no MatMulInteger by one zero point for each row: there, `zero_point of x * sums of columns` is
// taken off sums.
#pragma once

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Puts these operators in the place of products that have constant integers and scales.
void export_dynamic(graph::Graph &g);

/// The other way, wherever nothing else reads what lies between.
void import_dynamic(graph::Graph &g);

/// int32 [columns] of weights [depth][columns] of 8 bits less their zero points (one, one for each column, or no data).
Tensor column_sums_of(const Tensor &weight, const Tensor &zero);

}  // namespace qtn::onnx
