// SPDX-License-Identifier: Apache-2.0
// Operators on tensors at once, outside of any graph.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/op.hpp"

namespace qtn::ops {

/// The first `output_count` outputs of an operator. Where all moved operands are on one per-tensor grid, results stay on
/// it, and so does that of Relu; every other result is float or plain integers. Throws QTN_EUNSUPPORTED on an unknown
/// name.
std::vector<Tensor> run_eager(const std::string &name, std::span<const Tensor *const> inputs, std::size_t output_count,
                              const Attrs &attrs);

/// The one output of an operator, quantized by `quantizer`; as run_eager() has it where that is nullptr.
Tensor run_eager(const std::string &name, std::span<const Tensor *const> inputs, const Attrs &attrs,
                 const QuantizerPtr &quantizer);

/// x [..., in] times weight [out, in] transposed, plus bias [out] (nullptr: none); quantized by `quantizer` unless that
/// is nullptr. A float x beside a quantized weight is quantized by its own range first (semantics of dynamic
/// quantization).
Tensor linear(const Tensor &x, const Tensor &weight, const Tensor *bias, const QuantizerPtr &quantizer);

/// ONNX Conv of rank 4.
Tensor conv2d(const Tensor &x, const Tensor &weight, const Tensor *bias, const QuantizerPtr &quantizer,
              const Attrs &attrs);

}  // namespace qtn::ops
