// SPDX-License-Identifier: Apache-2.0
// DATA of the command line: samples for the inputs of a model, from arrays or from a folder of images.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shared/handles.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tool {

struct DataOptions {
  std::vector<std::string> sources;
  std::string size, mean, std, layout, channels;  // of images; "" where not given
};

/// Returns --data, which the command requires or not.
CLI::Option *add_data_options(CLI::App &command, DataOptions &options);

/// Samples that are read when asked for, so that memory does not grow with their number.
class Samples {
 public:
  virtual ~Samples() = default;
  virtual size_t count() const = 0;
  /// What is read.
  virtual std::vector<std::string> files() const = 0;
  /// One tensor for each input of the model, holding samples [first, first + count); none for those with state.
  virtual std::vector<Tensor> read(size_t first, size_t count) const = 0;
  /// Whether one sample is a whole input, without an axis for the batch.
  virtual bool unbatched() const { return false; }
  /// What the data give for an input with state: with this it begins. None where they give nothing.
  virtual Tensor first_state(size_t /*input*/) const { return nullptr; }
};

/// Inputs with state come from outputs of the run before, so data give at most the first of their values.
std::unique_ptr<Samples> open_data(const DataOptions &options, const qmodel *model,
                                   const std::set<size_t> &with_state = {});

/// The batch that the model fixes, or 0.
size_t fixed_batch(const qmodel *model);

/// Samples a run: what the user says, else what the model fixes, else 1.
size_t batch_size(const qmodel *model, const Samples &samples, size_t wanted);

}  // namespace tool
