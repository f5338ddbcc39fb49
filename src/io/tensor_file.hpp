// SPDX-License-Identifier: Apache-2.0
// A file of tensors whose header has been read and checked: .npy and .safetensors look alike from here on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "core/tensor.hpp"

namespace qtn::io {

/// What the file says of one tensor.
struct StoredTensor {
  std::string name;  ///< "" in a .npy file
  qdtype dtype = QTN_FLOAT32;
  Shape shape;
  std::uint64_t offset = 0;  ///< of the elements, in the file
  bool fortran_order = false;
  bool big_endian = false;
  QuantizerPtr quantizer = nullptr;
};

/// 4- and 2-bit integers are stored as one byte each, of this type; other types as they are.
qdtype stored_dtype(qdtype dtype);

/// Elements as they are stored: contiguous, of stored_dtype().
Tensor to_stored(const Tensor &t);

class TensorFile {
 public:
  explicit TensorFile(InputFile file) : file_(std::move(file)) {}

  const std::string &path() const { return file_.path(); }
  const std::vector<StoredTensor> &tensors() const { return tensors_; }

  /// Throws QTN_EFORMAT unless the elements lie inside the file, which bounds every later computation with the shape.
  void add(StoredTensor t);

  /// Throws QTN_EINVAL, naming what there is.
  const StoredTensor &only() const;
  const StoredTensor &named(std::string_view name) const;

  /// Row-major; a Fortran-order array is a view that has its strides.
  Tensor read(const StoredTensor &t) const;

  /// Indices [start, stop) of the first dimension, which must be there. Throws QTN_EINVAL where they are not.
  Tensor read_rows(const StoredTensor &t, std::int64_t start, std::int64_t stop) const;

 private:
  Tensor read_at(const StoredTensor &t, std::uint64_t offset, const Shape &shape) const;
  std::string names() const;

  InputFile file_;
  std::vector<StoredTensor> tensors_;
};

/// JSON: {"tensors": [{"name", "dtype", "shape", "scheme" where quantized}]}.
std::string inspect_json(const TensorFile &file);

}  // namespace qtn::io
