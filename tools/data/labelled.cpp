// SPDX-License-Identifier: Apache-2.0
#include "data/labelled.hpp"

#include <cstring>

#include "data/file.hpp"
#include "shared/model.hpp"

namespace tool {

namespace {

// Tensors of one sample each, one behind the other.
Tensor joined(const std::vector<Tensor> &parts) {
  Shape shape = shape_of(parts.front().get());
  shape[0] = static_cast<int64_t>(parts.size());
  Tensor all = make<Tensor>(qtensor_create, qtensor_dtype(parts.front().get()), shape.data(), shape.size(), nullptr,
                            nullptr, size_t{0});
  void *data = nullptr;
  check(qtensor_data_mut(&data, all.get()));
  auto *to = static_cast<unsigned char *>(data);
  for (const Tensor &part : parts) {
    const Tensor flat = make<Tensor>(qtensor_contiguous, part.get());
    std::memcpy(to, qtensor_data(flat.get()), qtensor_nbytes(flat.get()));
    to += qtensor_nbytes(flat.get());
  }
  return all;
}

}  // namespace

LabelledSamples::LabelledSamples(const DataOptions &data, const std::string &labels_path, const qmodel *model)
    : samples_(open_data(data, model)),
      labels_path_(labels_path),
      labels_(read_labels(labels_path, samples_->count())) {
  if (samples_->unbatched()) throw Failure("the model's input has no axis for a batch, which training needs");
}

std::vector<std::string> LabelledSamples::files() const {
  std::vector<std::string> files = samples_->files();
  for (std::string &path : matches_of(labels_path_)) files.push_back(std::move(path));
  return files;
}

Batch LabelledSamples::read(std::span<const size_t> indices) const {
  std::vector<std::vector<Tensor>> parts;  // by input
  std::vector<int64_t> labels;
  for (const size_t index : indices) {
    std::vector<Tensor> sample = samples_->read(index, 1);
    parts.resize(sample.size());
    for (size_t i = 0; i < sample.size(); ++i) parts[i].push_back(std::move(sample[i]));
    labels.push_back(labels_[index]);
  }
  Batch batch;
  for (const std::vector<Tensor> &part : parts) batch.inputs.push_back(joined(part));
  const auto count = static_cast<int64_t>(labels.size());
  batch.labels = make<Tensor>(qtensor_create, QTN_INT64, &count, size_t{1}, nullptr, labels.data(),
                              labels.size() * sizeof(int64_t));
  return batch;
}

void LabelledSamples::check_labels(size_t classes) const {
  for (size_t i = 0; i < labels_.size(); ++i)
    if (labels_[i] < 0 || labels_[i] >= static_cast<int64_t>(classes))
      throw Failure(labels_path_ + ": label " + std::to_string(labels_[i]) + " of sample " + std::to_string(i) +
                    " is not a class: the model has " + std::to_string(classes));
}

}  // namespace tool
