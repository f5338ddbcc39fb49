// SPDX-License-Identifier: Apache-2.0
// What `quantize` and `calibrate` share: a configuration, and the samples to calibrate with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/data.hpp"

namespace tool {

struct CalibrationOptions {
  std::string config, observer;  // config "": onnx
  std::optional<bool> equalize;
  size_t samples = 0;  // 0: all
  DataOptions data;
};

/// Returns the option --data, which is not required yet.
CLI::Option *add_calibration_options(CLI::App &command, CalibrationOptions &options);

/// A recipe by its name, or one of a file NAME.json.
Config open_config(const std::string &name);

/// That file; "" where the name is a recipe's.
std::string config_file(const std::string &name);

Config make_config(const CalibrationOptions &options);

/// One of `count` shares of the samples, counted from 0.
struct Shard {
  size_t index = 0, count = 1;
};

/// The batches to calibrate with: those of a share.
class CalibrationData {
 public:
  CalibrationData(const CalibrationOptions &options, const qmodel *model, Shard shard);

  size_t batches() const { return end_ - first_; }
  size_t samples() const { return batches() * batch_; }
  std::vector<std::string> files() const { return samples_->files(); }
  std::vector<Tensor> read(size_t index) const { return samples_->read((first_ + index) * batch_, batch_); }

 private:
  std::unique_ptr<Samples> samples_;
  size_t batch_, first_, end_;
};

}  // namespace tool
