// SPDX-License-Identifier: Apache-2.0
// The same storage seen otherwise.
#include <algorithm>

#include "base/error.hpp"
#include "core/scales.hpp"
#include "core/tensor.hpp"

namespace qtn {

Tensor Tensor::view(const Shape &shape, const Shape &strides, std::ptrdiff_t element_offset) const {
  Tensor t(dtype_, shape, strides, data_, owner_, quantizer_);
  if (!data_) return t;
  auto *base = static_cast<std::byte *>(data_);
  if (is_packed(dtype_)) {
    const auto per_byte = static_cast<std::ptrdiff_t>(8 / dtype_bits(dtype_));
    const std::ptrdiff_t at = element_offset + lane_, lane = ((at % per_byte) + per_byte) % per_byte;
    t.data_ = base + (at - lane) / per_byte;
    t.lane_ = static_cast<std::uint8_t>(lane);
  } else {
    t.data_ = base + element_offset * static_cast<std::ptrdiff_t>(dtype_size(dtype_));
  }
  return t;
}

Tensor Tensor::reshaped(const Shape &shape) const { return view(shape, contiguous_strides(shape)); }

Tensor Tensor::with_quantizer(QuantizerPtr quantizer) const {
  Tensor t = *this;
  t.quantizer_ = std::move(quantizer);
  return t;
}

Tensor Tensor::as_packed(qdtype dtype) const {
  Shape shape = shape_;
  shape[rank() - 1] *= 8 / dtype_bits(dtype);
  return Tensor(dtype, shape, contiguous_strides(shape), data_, owner_);
}

Tensor Tensor::select(std::int64_t axis, std::int64_t index) const {
  const std::size_t a = normalize_axis(axis, rank(), "select");
  if (index < -dim(a) || index >= dim(a))
    fail(QTN_EINVAL, "select: index ", index, " is outside dimension ", a, " of size ", dim(a));
  const std::int64_t at = index < 0 ? index + dim(a) : index;
  Shape shape = shape_, strides = strides_;
  shape.erase(a);
  strides.erase(a);
  Tensor t = view(shape, strides, at * strides_[a]);
  if (quantizer_) t.quantizer_ = select_scales(quantizer_, shape_, a, at);
  return t;
}

Tensor Tensor::slice(std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  const std::size_t a = normalize_axis(axis, rank(), "slice");
  if (step <= 0) fail(QTN_EINVAL, "slice: step ", step, " must be positive");
  const std::int64_t size = dim(a);
  start = std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, size);
  stop = std::clamp<std::int64_t>(stop < 0 ? stop + size : stop, 0, size);
  const std::int64_t count = stop > start ? (stop - start - 1) / step + 1 : 0;
  Shape shape = shape_, strides = strides_;
  shape[a] = count;
  strides[a] = strides_[a] * (count > 1 ? step : 1);
  Tensor t = view(shape, strides, count > 0 ? start * strides_[a] : 0);
  if (quantizer_) t.quantizer_ = slice_scales(quantizer_, shape_, a, start, count, step);
  return t;
}

Tensor Tensor::permute(std::span<const std::int32_t> axes) const {
  if (axes.size() != rank()) fail(QTN_EINVAL, "permute: ", axes.size(), " axes for a tensor of rank ", rank());
  Shape shape = shape_, strides = strides_;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rank(); ++i) {
    const std::size_t from = normalize_axis(axes[i], rank(), "permute");
    if (std::find(order.begin(), order.end(), from) != order.end())
      fail(QTN_EINVAL, "permute: axis ", from, " is named twice");
    order.push_back(from);
    shape[i] = shape_[from];
    strides[i] = strides_[from];
  }
  Tensor t = view(shape, strides);
  if (quantizer_) t.quantizer_ = permute_scales(quantizer_, shape_, order);
  return t;
}

Tensor Tensor::reshape(const Shape &shape) const {
  if (element_count(shape) != count())
    fail(QTN_ESHAPE, "reshape: ", to_string(shape_), " has ", count(), " elements, ", to_string(shape), " has ",
         element_count(shape));
  const std::optional<Shape> strides = reshape_strides(shape_, strides_, shape);
  Tensor t = strides ? view(shape, *strides) : to_contiguous().reshaped(shape);
  if (quantizer_) t.quantizer_ = reshape_scales(quantizer_, shape_, shape);
  return t;
}

bool Tensor::expands_to(const Shape &shape) const {
  if (rank() > shape.size()) return false;
  for (std::size_t i = 0; i < rank(); ++i)
    if (dim(i) != 1 && dim(i) != shape[shape.size() - rank() + i]) return false;
  return true;
}

Tensor Tensor::expand(const Shape &shape) const {
  if (!expands_to(shape)) fail(QTN_ESHAPE, "expand: ", to_string(shape_), " does not broadcast to ", to_string(shape));
  return view(shape, broadcast_strides(shape_, strides_, shape));
}

}  // namespace qtn
