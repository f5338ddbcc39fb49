// SPDX-License-Identifier: Apache-2.0
// The tensor: dtype + shape + strides over shared storage, with an optional quantizer. Copies are views.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/memory.hpp"
#include "core/codes.hpp"
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
  std::size_t nbytes() const { return storage_nbytes(dtype_, count()); }
  const QuantizerPtr &quantizer() const { return quantizer_; }
  bool quantized() const { return quantizer_ != nullptr; }
  bool has_data() const { return data_ != nullptr || (owner_ != nullptr); }
  bool contiguous() const { return lane_ == 0 && same_layout(shape_, strides_, contiguous_strides(shape_)); }
  bool owns_same_storage(const Tensor &other) const { return owner_ == other.owner_; }
  std::weak_ptr<void> storage() const { return owner_; }  ///< of memory that tensors own; expires with it

  /// The first element; of a packed type the byte that holds it.
  void *data() const { return data_; }
  PackedSpan packed() const { return {as<std::uint8_t>(), lane_, dtype_}; }  ///< of a packed type
  template <class T>
  T *as() const {
    return static_cast<T *>(data_);
  }

  /// The same storage seen otherwise; the quantizer stays as it is.
  Tensor view(const Shape &shape, const Shape &strides, std::ptrdiff_t element_offset = 0) const;
  Tensor reshaped(const Shape &shape) const;  ///< of a contiguous tensor
  Tensor with_quantizer(QuantizerPtr quantizer) const;
  /// Contiguous uint8 as elements of a packed type, of which a byte holds several: the last axis becomes longer.
  Tensor as_packed(qdtype dtype) const;

  /// Views that take the quantizer along: scales of channels and blocks that are left out, moved or cut follow.
  Tensor select(std::int64_t axis, std::int64_t index) const;
  Tensor slice(std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step) const;
  Tensor permute(std::span<const std::int32_t> axes) const;
  Tensor reshape(const Shape &shape) const;  ///< a view where strides allow, else a copy

  /// Read as a larger shape under NumPy broadcasting; without the quantizer's scales following.
  bool expands_to(const Shape &shape) const;
  Tensor expand(const Shape &shape) const;

  Tensor to_contiguous() const;  ///< itself when it is
  /// The same elements, contiguous, in any order of its axes: a copy only where gaps lie between them.
  Tensor in_any_order() const;
  Tensor clone() const;  ///< a contiguous copy with storage of its own

 private:
  qdtype dtype_ = QTN_FLOAT32;
  Shape shape_;
  Shape strides_;
  void *data_ = nullptr;
  std::uint8_t lane_ = 0;  ///< of a packed type: elements before the first one in its byte
  std::shared_ptr<void> owner_;
  QuantizerPtr quantizer_;
};

/// Copies elements of one dtype between any strides. Shapes must be equal.
void copy_elements(const Tensor &dst, const Tensor &src);

/// Element values as int64 of any integer or bool tensor, in logical order. Throws QTN_EDTYPE naming `what`.
std::vector<std::int64_t> int_values(const Tensor &t, const char *what);

/// Element values as float of a float32 tensor, in logical order.
std::vector<float> float_values(const Tensor &t, const char *what);

/// The values in a type that computes, contiguous: narrow floats as float32, packed integers as int8 or uint8; other
/// types as they are. The quantizer is left behind.
Tensor to_plain(const Tensor &t);

/// Floats of another width as float32; quantized and other tensors as they are.
Tensor as_float32(const Tensor &t);

/// to_plain() undone: a contiguous tensor of a type that is only stored. Integers keep their low bits; floats round to
/// even, and float8 saturates if asked to.
Tensor from_plain(const Tensor &t, qdtype dtype, bool saturate = true);

/// Tensor of the quantizer's dtype from float32 values.
Tensor quantize(const Tensor &x, const QuantizerPtr &quantizer);

/// Float32 values of a quantized tensor.
Tensor dequantize(const Tensor &q);

/// The one element as double, dequantized if quantized.
double item(const Tensor &t);

/// Same dtype, shape and quantizer, and equal elements; NaN equals nothing.
bool equal(const Tensor &a, const Tensor &b);

/// The text that PyTorch prints for such a tensor.
std::string describe(const Tensor &t);

/// Throws QTN_ESHAPE unless the scales of a quantizer fit the shape.
void check_quantizer_fits(const Quantizer &quantizer, const Shape &shape);

/// The quantizer for a tensor of this shape: checked, and its axis counted from the front.
QuantizerPtr fitted(const QuantizerPtr &quantizer, const Shape &shape);

template <class T>
Tensor Tensor::from(qdtype dtype, const Shape &shape, std::span<const T> values) {
  Tensor t(dtype, shape);
  std::copy(values.begin(), values.end(), t.as<T>());
  return t;
}

}  // namespace qtn
