// SPDX-License-Identifier: Apache-2.0
// Small networks with seeded weights, and data for them.
#pragma once

#include <cmath>
#include <random>

#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "graph_builder.hpp"
#include "quant/calibrate.hpp"
#include "quant/samples.hpp"
#include "quant/search/noise.hpp"

namespace qtn::test {

Tensor normal(const Shape &shape, unsigned seed, float deviation = 1);

quant::Samples normal_samples(const Shape &shape, std::size_t count);

/// Conv 3x3, Relu, depthwise 3x3, LeakyRelu, MaxPool, Conv 1x1, Relu, Flatten, Gemm. `spread` scales the channels of
/// the first layers by powers of that number; what reads them takes it back.
graph::Graph chain(float spread = 1);

quant::PreparedModel calibrated(const graph::Graph &g, const quant::Config &config, const quant::Samples &samples);

/// The noise of all outputs of b, whatever b is, against those of a.
quant::Noise difference(const graph::Graph &a, const graph::Graph &b, const quant::Samples &samples);

}  // namespace qtn::test
