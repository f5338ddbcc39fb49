// SPDX-License-Identifier: Apache-2.0
// What is trained: a float graph, its parameters with their gradients, and what normalizations remember. It does not
// depend on the shapes of inputs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/parameter.hpp"
#include "train/quantization.hpp"

namespace qtn::train {

/// The running mean and variance of a BatchNormalization, and what they become at the next update: the mean of what
/// each batch since the last one would make of them, formed as that of gradients is, so that it does not matter whether
/// one process or several saw these. A module that a network uses twice is two nodes with the same statistics, which
/// each moves in turn, as in PyTorch.
struct Statistics {
  graph::ValueId mean_id, variance_id;  ///< constants that nothing else reads
  Tensor mean, variance;                ///< float32, contiguous
  Tensor next_mean, next_variance;      ///< where there were batches
  std::size_t batches = 0;              ///< since the last update

  struct OfChannel {
    double mean, variance;
  };
  struct Use {
    double keep;                   ///< of the running ones in the next
    std::vector<OfChannel> batch;  ///< of the forward run at hand
    bool measured = false;         ///< by it
  };
  std::map<std::size_t, Use> uses = {};  ///< by node index

  /// What uses have measured counts from now on, or is forgotten.
  void commit();
  void forget();
};

/// What is not trained, but changes with training.
struct Buffer {
  std::string name;
  Tensor value;  ///< float32, contiguous; stays at its place for the network's lifetime
};

/// What steps ask while they run.
struct Switches {
  bool freeze_bn = false;             ///< normalize by the running statistics, and leave them as they are
  bool observers = true;              ///< grids of activations follow what is seen
  bool fake_quant = true;             ///< values are rounded to their grids
  std::uint64_t seed = 0, batch = 0;  ///< what Dropout drops follows from these: batches so far
  std::uint64_t step = 0;             ///< updates so far
};

struct Network {
  /// Copies the constants that can be trained: weights and biases of Conv, ConvTranspose, Gemm, MatMul and of an Add
  /// behind a MatMul or Conv; tables that Gather reads; scales and offsets of normalizations; slopes of PRelu. Throws
  /// QTN_EUNSUPPORTED on a graph that is quantized.
  explicit Network(graph::Graph g, std::optional<Quantization> quantization = {});
  Network(const Network &) = delete;
  Network &operator=(const Network &) = delete;

  /// The current model: a graph, and in quantization-aware training a prepared model.
  graph::Graph snapshot() const;
  std::optional<quant::PreparedModel> prepared() const;

  /// Views of what a snapshot is made from: parameters and statistics.
  std::vector<Tensor> state() const;

  /// What a forward run has noticed (statistics, extents) counts from now on, or is forgotten.
  void commit();
  void revert();

  /// Running statistics take in those of the batches since the last update.
  void update_statistics();
  /// Learned grids are what their parameters say, which an optimizer or the caller may have written.
  void follow();

  graph::Graph graph;
  std::optional<Quantization> quantization;            ///< of quantization-aware training
  std::vector<Parameter> parameters;                   ///< tensors stay at their place for the network's lifetime
  std::map<graph::ValueId, std::size_t> parameter_of;  ///< by the constant's id
  std::size_t first_of_grids = 0;                      ///< from here on, parameters are those of `quantization`
  std::vector<Statistics> statistics;
  std::map<std::size_t, std::size_t> statistics_of;  ///< by node index
  std::vector<Buffer> buffers;                       ///< the tensors of these
  Switches switches;

 private:
  void find_statistics();
  /// Those of one module, which all of these nodes are.
  void add_statistics(std::span<const std::size_t> nodes);
};

}  // namespace qtn::train
