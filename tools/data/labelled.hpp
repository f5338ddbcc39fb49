// SPDX-License-Identifier: Apache-2.0
// Samples with their class numbers, as training takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/data.hpp"

namespace tool {

struct Batch {
  std::vector<Tensor> inputs;
  Tensor labels;  ///< int64 [samples]
};

class LabelledSamples {
 public:
  /// Throws where counts differ, or a sample is a whole input without an axis for the batch.
  LabelledSamples(const DataOptions &data, const std::string &labels_path, const qmodel *model);

  size_t count() const { return labels_.size(); }
  int64_t label(size_t index) const { return labels_[index]; }
  const Samples &samples() const { return *samples_; }
  /// Those that the samples and their labels were read from.
  std::vector<std::string> files() const;

  /// The samples of these indices, in this order.
  Batch read(std::span<const size_t> indices) const;

  /// Throws on a label that is not one of the classes.
  void check_labels(size_t classes) const;

 private:
  std::unique_ptr<Samples> samples_;
  std::string labels_path_;
  std::vector<int64_t> labels_;
};

}  // namespace tool
