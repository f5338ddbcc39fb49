// SPDX-License-Identifier: Apache-2.0
// SmoothQuant (Xiao et al., 2022) where it pays: features of transformers of which a few are many times as large as the
// others are divided by a factor each, which the weights of the products that read them take over.
#pragma once

#include "quant/config.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// Puts a multiplication in front of the MatMul and Gemm that read such features, wherever no image of a convolution
/// would have to be floats for it. The factors are max|x|^a / max|w|^(1 - a), where max|x| is at least four times the
/// root mean square of the feature, each a being the one of which the least noise is expected:
///
///   of activations   d^2/12 sum_j s_j^2 sum_c w_cj^2     d the step of one grid for all x_j / s_j
///   of weights       sum_c d_c^2/12 sum_j E[x_j^2] / s_j^2   d_c the step of channel c of w_cj s_j
///
/// False, and nothing done, where no product has its noise halved, or the samples have fewer than 64 rows. `g` has been
/// through Pipeline::quantization.
bool smooth_features(graph::Graph &g, const Config &config, const Samples &samples);

}  // namespace qtn::quant
