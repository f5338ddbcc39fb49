// SPDX-License-Identifier: Apache-2.0
// Epochs of a trainer, and the best model among them.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled.hpp"
#include "shared/scoring.hpp"

namespace tool {

struct TrainingOptions {
  size_t epochs = 0, batch = 0, warmup = 0;  // batch 0: what the model fixes, else 32
  double lr = 0;
  std::optional<double> momentum, weight_decay;
  std::string optimizer, schedule, checkpoint, log;
  int64_t seed = 0;
  bool resume = false;
  bool freezes = false;  // running statistics stay in the last fifth of the steps
};

/// NAME.best.safetensors beside the checkpoint NAME.safetensors: of the best epoch.
std::string best_path(const std::string &checkpoint);

struct Epoch {
  size_t number;  ///< from 1
  size_t step;    ///< steps of the training so far
  double lr;      ///< of the last of them
  double loss;    ///< the mean over the steps of the epoch
  Score training;
  std::optional<Score> validation;
  double seconds;
};

/// A line of --log.
nlohmann::ordered_json json_of(const Epoch &epoch);

/// Where an epoch's top-1 is judged: on the validation data, else on the training data.
const Score &judged(const Epoch &epoch);

struct Best {
  size_t epoch = 0;
  double top1 = -1;
  Model model;
};

class Training {
 public:
  /// `model` is float or prepared with QTN_QAT. Without `validation` the training data stands for it.
  Training(const qmodel *model, const LabelledSamples &data, const LabelledSamples *validation,
           const TrainingOptions &options);

  /// Trains to the end, or to the first Ctrl-C; the epoch that this cuts off counts as one.
  void run();

  /// The top-1 of the current model, where epochs are judged.
  double top1();

  size_t batch() const { return batch_; }
  const std::vector<Epoch> &epochs() const { return epochs_; }
  bool interrupted() const { return interrupted_; }

  /// The epoch of the highest top-1; of equals the last.
  const Best &best() const { return best_; }

 private:
  size_t resume();
  double step(const Batch &batch);
  void freeze();
  void finish(Epoch epoch, std::chrono::steady_clock::time_point start);
  bool keep(size_t epoch, double top1);
  void save(bool best) const;
  Score score_of(const LabelledSamples &samples, size_t count);
  double rate(size_t step) const;

  const LabelledSamples &data_;
  const LabelledSamples *validation_;
  TrainingOptions options_;
  size_t batch_, steps_;  // samples a step, steps an epoch
  Trainer trainer_;
  size_t outputs_;
  std::vector<Epoch> epochs_;
  Best best_;
  std::string note_;  // beside the progress
  bool interrupted_ = false;
};

}  // namespace tool
