// SPDX-License-Identifier: Apache-2.0
// Arrays in files (.npy, .safetensors), read by rows of the first axis so that data larger than memory can stream.
#pragma once

#include <qtensor/qtensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file.hpp"
#include "handles.hpp"

namespace tool {

using Shape = std::vector<int64_t>;

/// A C-order array inside a file. float64 is read as float32, the working float type of the library.
struct Array {
  std::shared_ptr<const InputFile> file;
  uint64_t offset = 0;
  qdtype stored = QTN_FLOAT32;
  Shape shape;

  /// Fails unless the elements lie inside the file, and so bounds every later computation with the shape.
  void validate() const;
  qdtype dtype() const { return stored == QTN_FLOAT64 ? QTN_FLOAT32 : stored; }
  size_t rows() const { return shape.empty() ? 0 : static_cast<size_t>(shape[0]); }
  size_t row_elements() const;
  /// Elements of rows [first, first + count), as `dtype()`.
  Bytes read(size_t first, size_t count) const;
};

using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// An array in memory, on its way to a file.
struct Result {
  std::string name;
  qdtype dtype = QTN_FLOAT32;
  Shape shape;
  Bytes data;
};

size_t element_bytes(qdtype dtype);
/// "1x3x224x224", as in the messages of the library; "?" for an open dimension.
std::string shape_text(const Shape &shape);

Array open_npy(const std::string &path);
void write_npy(const std::string &path, const Result &result);

NamedArrays open_safetensors(const std::string &path);
void write_safetensors(const std::string &path, const std::vector<Result> &results);

/// Class numbers: int64 (or a narrower integer) of shape [count] or [count, 1].
std::vector<int64_t> read_labels(const std::string &path);

}  // namespace tool
