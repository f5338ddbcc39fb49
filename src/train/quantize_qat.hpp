// SPDX-License-Identifier: Apache-2.0
// All of quantization-aware training in one call, by the recipe of NVIDIA's guide to its toolkit: calibrate, then few
// epochs at a low rate that falls along a cosine, with the grids of activations as calibration found them.
#pragma once

#include <functional>
#include <vector>

#include "quant/quantize.hpp"

namespace qtn::train {

struct Batch {
  std::vector<Tensor> inputs, targets;
};

/// Batches that are read when they are needed.
struct Batches {
  std::size_t count;  ///< of an epoch
  /// What it throws ends the work.
  std::function<Batch(std::size_t epoch, std::size_t index)> read;
};

/// Told the loss after each step; false ends the training there, and what has been learned is converted. Throws where
/// the work is to end.
using StepProgress = std::function<bool(std::size_t done, std::size_t total, double loss)>;

/// Prepares with QTN_QAT, calibrates, trains, converts. `attrs`: what qmodel_quantize_qat lists.
quant::Quantized quantize_qat(const graph::Graph &float_graph, const quant::Config &config, const Batches &batches,
                              const Attrs &attrs, const quant::Progress &calibrating, const StepProgress &training);

}  // namespace qtn::train
