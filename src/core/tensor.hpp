// SPDX-License-Identifier: Apache-2.0
// The tensor: dtype + shape + strides over shared storage, with an optional quantizer. Copies are views.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/memory.hpp"
#include "core/dtype.hpp"
#include "core/quantizer.hpp"
#include "core/shape.hpp"

namespace qtn {

class Tensor {
 public:
  Tensor() = default;

  /// Owning, contiguous, uninitialised.
  Tensor(qdtype dtype, const Shape &shape, QuantizerPtr quantizer = nullptr);

  /// A view of memory kept alive by `owner` (which may be empty when the caller keeps it alive).
  Tensor(qdtype dtype, const Shape &shape, const Shape &strides, void *data, std::shared_ptr<void> owner,
         QuantizerPtr quantizer = nullptr);

  /// Type and shape without data, for shape inference.
  static Tensor meta(qdtype dtype, const Shape &shape) {
    return Tensor(dtype, shape, contiguous_strides(shape), nullptr, nullptr);
  }

  /// A contiguous tensor with the given values.
  template <class T>
  static Tensor from(qdtype dtype, const Shape &shape, std::span<const T> values);
  static Tensor from_ints(std::span<const std::int64_t> values);  ///< rank 1, int64
  static Tensor scalar(float value);                              ///< rank 0, float32

  qdtype dtype() const { return dtype_; }
  const Shape &shape() const { return shape_; }
  const Shape &strides() const { return strides_; }  ///< in elements
  std::size_t rank() const { return shape_.size(); }
  std::int64_t dim(std::size_t i) const { return shape_[i]; }
  std::int64_t count() const { return element_count(shape_); }
  std::size_t nbytes() const { return static_cast<std::size_t>(count()) * dtype_size(dtype_); }
  const QuantizerPtr &quantizer() const { return quantizer_; }
  bool quantized() const { return quantizer_ != nullptr; }
  bool has_data() const { return data_ != nullptr || (owner_ != nullptr); }
  bool contiguous() const { return same_layout(shape_, strides_, contiguous_strides(shape_)); }
  bool owns_same_storage(const Tensor &other) const { return owner_ == other.owner_; }

  void *data() const { return data_; }
  template <class T>
  T *as() const {
    return static_cast<T *>(data_);
  }

  /// The same storage seen otherwise.
  Tensor view(const Shape &shape, const Shape &strides, std::ptrdiff_t element_offset = 0) const;
  Tensor reshaped(const Shape &shape) const;  ///< of a contiguous tensor
  Tensor with_quantizer(QuantizerPtr quantizer) const;

  Tensor select(std::int64_t axis, std::int64_t index) const;
  Tensor slice(std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step) const;
  Tensor permute(std::span<const std::int32_t> axes) const;

  Tensor to_contiguous() const;  ///< itself when it is
  Tensor clone() const;          ///< a contiguous copy with storage of its own

 private:
  qdtype dtype_ = QTN_FLOAT32;
  Shape shape_;
  Shape strides_;
  void *data_ = nullptr;
  std::shared_ptr<void> owner_;
  QuantizerPtr quantizer_;
};

/// Copies elements of one dtype between any strides. Shapes must be equal.
void copy_elements(const Tensor &dst, const Tensor &src);

/// Element values as int64 of any integer or bool tensor, in logical order. Throws QTN_EDTYPE naming `what`.
std::vector<std::int64_t> int_values(const Tensor &t, const char *what);

/// Element values as float of a float32 tensor, in logical order.
std::vector<float> float_values(const Tensor &t, const char *what);

/// Integer tensor of the quantizer's dtype from float32 values.
Tensor quantize(const Tensor &x, const QuantizerPtr &quantizer);

/// Float32 values of a quantized tensor.
Tensor dequantize(const Tensor &q);

/// The one element as double, dequantized if quantized.
double item(const Tensor &t);

/// The text of requirements T03/T04.
std::string describe(const Tensor &t);

/// Throws QTN_ESHAPE unless a per-channel quantizer fits the shape.
void check_quantizer_fits(const Quantizer &quantizer, const Shape &shape);

template <class T>
Tensor Tensor::from(qdtype dtype, const Shape &shape, std::span<const T> values) {
  Tensor t(dtype, shape);
  std::copy(values.begin(), values.end(), t.as<T>());
  return t;
}

}  // namespace qtn
