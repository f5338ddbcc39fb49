// SPDX-License-Identifier: Apache-2.0
// Quantization without data: activations get their grids when they are known.
#pragma once

#include <optional>

#include "graph/facts.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "quant/config.hpp"

namespace qtn::quant {

/// Whose grid x gets: fbgemm (which has 7 bits), qnnpack or onnx.
Numerics own_grid_numerics(const Settings &settings);

struct DynamicOptions {
  bool convolutions = false;
  /// What of an activation has a grid; nullopt: rows under onnx numerics, which have no other promise to keep, tensors
  /// under PyTorch's.
  std::optional<ops::Granularity> granularity{};
};

/// Whether a MatMul or Gemm of an activation by constant weights, which dynamic_product() can stand for.
bool has_dynamic_form(const graph::Graph &g, const graph::Facts &facts, const graph::Node &node);

/// DynamicQuantizeMatMul in the place of such a node, with weights of 8 bits as the settings say; its constants are added
/// to `g`. `granularity` as in DynamicOptions. Throws QTN_EUNSUPPORTED for weights in blocks; `who` begins messages.
graph::Node dynamic_product(graph::Graph &g, const graph::Node &node, const Settings &settings,
                            std::optional<ops::Granularity> granularity, const char *who);

/// Every MatMul and Gemm with constant weights becomes DynamicQuantizeMatMul: weights of 8 bits as the settings of its
/// node say, activations uint8 on grids that their own values give, under the numerics of its node: PyTorch's under
/// fbgemm (over 7 bits with "reduce_range") and qnnpack, DynamicQuantizeLinear's under all others. With `convolutions`
/// Conv too, as DynamicQuantizeLinear and ConvInteger. Tables of embeddings and the weights of recurrent layers become
/// integers. Throws QTN_EUNSUPPORTED on a graph that is quantized already,
/// rows under PyTorch's numerics, or settings that give weights other than 8 bits per tensor or channel.
graph::Graph quantize_dynamic(const graph::Graph &float_graph, const Config &config, const DynamicOptions &options);

}  // namespace qtn::quant
