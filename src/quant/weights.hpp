// SPDX-License-Identifier: Apache-2.0
// Constants of Conv, Gemm and MatMul as integers.
#pragma once

#include "graph/graph.hpp"
#include "quant/config.hpp"

namespace qtn::quant {

/// Weights whose last or first axis (as the operator has it) is the output channel, under the weight observer of the
/// settings. Where a bias would not fit int32 in units of sx * sw[c], sw[c] is enlarged until it does; weights in
/// blocks have no such units. `bias` may be nullptr. `learned`: the grid to take rather than the observer's, or
/// nullptr.
Tensor quantize_weight(const graph::Node &node, const Tensor &weight, const Tensor *bias, double input_scale,
                       const Settings &settings, const QuantizerPtr &learned = nullptr);

/// What quantize_weight() chooses grids by.
ObserverSettings weight_observer_settings(const graph::Node &node, const Settings &settings);

/// The grid over a moving average of ranges, `running` as float32 [2, grids], that sees the weight once more, as
/// PyTorch's convert has its observer do.
QuantizerPtr averaged_grid(const graph::Node &node, const Tensor &weight, const Tensor &running,
                           const Settings &settings);

/// The same for any tensor, with channels along `axis`.
Tensor quantize_weight_along(const Tensor &weight, std::int64_t axis, const Settings &settings);

/// The integers that quantize_weight() uses on a grid that it chooses: the configuration may want fewer than the type
/// has.
IntegerRange weight_range(const graph::Node &node, const Tensor &weight, const Settings &settings);

/// The same as quantize_weight() of the weight that a node reads; `who`, weight and node begin messages.
Tensor quantize_weight_of(const graph::Graph &g, const graph::Node &node, const Tensor *bias, double input_scale,
                          const Settings &settings, const char *who, const QuantizerPtr &learned = nullptr);

/// int32 in units of float32(sx * sw[c]).
Tensor quantize_bias(const Tensor &bias, double input_scale, const Quantizer &weight);

}  // namespace qtn::quant
