// SPDX-License-Identifier: Apache-2.0
// Trains a network: batch by batch, gradients and then an update.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/attrs.hpp"
#include "train/groups.hpp"
#include "train/loss.hpp"
#include "train/network.hpp"
#include "train/optimizer.hpp"
#include "train/program.hpp"
#include "train/schedule.hpp"
#include "train/snapshot_evaluator.hpp"

namespace qtn::io {
class TensorFile;
struct NamedTensor;
}  // namespace qtn::io

namespace qtn::train {

/// What a trainer is made with.
std::vector<AttrSpec> trainer_options();

class Trainer {
 public:
  /// Throw QTN_EINVAL on an unknown key or value, listing the valid ones; what Network and Quantization throw.
  Trainer(graph::Graph g, const Attrs &attrs);
  Trainer(const quant::PreparedModel &prepared, const Attrs &attrs);

  /// The mean loss of a batch. Its gradients go into the parameters', which become the mean over all batches since the
  /// last update. Throws and leaves everything as it was on inputs or targets that do not fit, and where the loss, a
  /// value that is rounded or a gradient is not finite (QTN_EINVAL, naming the first tensor that is not). But gradients
  /// of the first batch since the last update that are not finite become 0.
  double backward(std::span<const Tensor *const> inputs, std::span<const Tensor *const> targets);

  /// One step of the optimizer; running statistics move by the mean of the batches since the last update. Throws
  /// QTN_ESTATE without a backward() before.
  void update();

  /// What the current model answers: new tensors.
  std::vector<Tensor> evaluate(std::span<const Tensor *const> inputs);

  /// Changes options that may change between steps. Throws QTN_EINVAL and changes nothing.
  void set(const Attrs &attrs);

  /// Settings of some parameters: see groups.hpp. Throws QTN_ESTATE between backward() and update().
  void set_group(const std::string &selector, const Attrs &settings);

  const graph::Graph &graph() const { return network_->graph; }
  const std::vector<Parameter> &parameters() const { return network_->parameters; }
  const std::vector<Buffer> &buffers() const { return network_->buffers; }

  /// The model with what has been learned: a graph, or of quantization-aware training a prepared model.
  graph::Graph snapshot() const { return network_->snapshot(); }
  std::optional<quant::PreparedModel> prepared() const {
    network_->follow();
    return network_->prepared();
  }

  /// Checkpoints: see checkpoint.cpp for what is in them.
  void save(const std::string &path) const;
  void load(const std::string &path);
  std::string to_bytes() const;
  void load(std::span<const std::byte> bytes);

 private:
  Trainer(std::unique_ptr<Network> network, const Attrs &attrs);

  /// Throws what graph::check_input throws.
  Program &program_for(std::span<const Tensor *const> inputs);
  double run(Program &program, std::span<const Tensor *const> inputs, std::span<const Tensor *const> targets);
  void run_backward(Program &program, std::span<const Tensor *const> inputs, std::span<const Tensor *const> targets);
  void keep_gradients();
  void restore_gradients();
  void check(std::span<const Tensor *const> inputs) const;
  void write(const std::function<void(std::span<const io::NamedTensor>)> &to) const;
  void restore(const io::TensorFile &file);

  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Program>> programs_;  // the latest used last
  SnapshotEvaluator evaluator_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  Groups groups_;
  Attrs schedule_options_;
  Schedule schedule_;
  std::vector<Tensor> means_;  // gradients of earlier batches, where several make a step
  std::size_t batches_ = 0;    // since the last update
  int threads_ = 0;
};

}  // namespace qtn::train
