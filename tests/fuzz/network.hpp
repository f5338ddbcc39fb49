// SPDX-License-Identifier: Apache-2.0
// A small network of layers of most kinds, for what is about a model rather than a model: configurations, calibrations,
// checkpoints.
#pragma once

#include "onnx_writer.hpp"

namespace fuzz {

/// x [1, 3, 6, 6] -> Conv, BatchNormalization, Relu, MaxPool, Conv by channels, Clip, Add, mean, Gemm -> y [1, 4]
Model small_network();

/// An input of it, and the tensors that calibrate it.
Tensor network_input(std::int64_t batch, std::uint64_t seed);

}  // namespace fuzz
