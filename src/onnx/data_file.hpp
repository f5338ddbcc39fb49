// SPDX-License-Identifier: Apache-2.0
// The elements of large constants in a file beside a model's own, which ONNX calls external data. The model's file, as
// a message of protobuf, holds less than 2 GiB.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/tensor.hpp"

namespace qtn::onnx {

/// Where in the file the elements of a contiguous tensor begin.
struct DataRegion {
  Tensor tensor;
  std::uint64_t offset;
};

/// The place behind these for one more: a multiple of the page, so that readers may map it.
std::uint64_t end_of(std::span<const DataRegion> regions);

/// A new file for the model file that is to be written at a path: PATH.data, or with a number where that is there
/// already. So the model that is there keeps the file that it names, until it is replaced.
class DataFile {
 public:
  explicit DataFile(std::string model) : model_(std::move(model)) {}
  /// Removes the file where no model came to name it.
  ~DataFile();
  DataFile(const DataFile &) = delete;
  DataFile &operator=(const DataFile &) = delete;

  /// As the model names it: without its folder. Throws QTN_EIO where it cannot be known what is there.
  const std::string &location();

  /// Throws QTN_EIO, or QTN_EUNSUPPORTED where the model is not to become a regular file.
  void write(std::span<const DataRegion> regions);

  /// The model is written. The files of this kind that the one before it named are removed.
  void keep();

 private:
  std::string path(std::size_t number) const;

  const std::string model_;
  std::size_t number_ = 0;
  std::string location_;          ///< once it was asked for
  std::set<std::string> former_;  ///< what the model that was there names
  bool is_written_ = false;
};

}  // namespace qtn::onnx
