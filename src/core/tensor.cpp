// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace qtn {
namespace {

std::shared_ptr<void> allocate(std::size_t nbytes) {
  AlignedBuffer buffer(nbytes);
  auto owner = std::make_shared<AlignedBuffer>(std::move(buffer));
  void *data = owner->data();
  return {std::move(owner), data};
}

/// Visits elements in logical order: visit(offset in elements, channel).
template <class Visit>
void for_each_element(const Tensor &t, std::int32_t axis, Visit &&visit) {
  const std::int64_t count = t.count();
  Shape index = t.shape();
  std::fill(index.begin(), index.end(), 0);
  std::int64_t offset = 0;
  const auto channel_axis = static_cast<std::size_t>(axis);
  for (std::int64_t i = 0; i < count; ++i) {
    visit(offset, t.rank() ? static_cast<std::size_t>(index[channel_axis]) : 0);
    for (std::size_t d = t.rank(); d-- > 0;) {
      offset += t.strides()[d];
      if (++index[d] < t.dim(d)) break;
      offset -= t.strides()[d] * t.dim(d);
      index[d] = 0;
    }
  }
}

}  // namespace

Tensor::Tensor(qdtype dtype, const Shape &shape, QuantizerPtr quantizer)
    : dtype_(dtype), shape_(shape), strides_(contiguous_strides(shape)), quantizer_(std::move(quantizer)) {
  owner_ = allocate(nbytes());
  data_ = owner_.get();
}

Tensor::Tensor(qdtype dtype, const Shape &shape, const Shape &strides, void *data, std::shared_ptr<void> owner,
               QuantizerPtr quantizer)
    : dtype_(dtype),
      shape_(shape),
      strides_(strides),
      data_(data),
      owner_(std::move(owner)),
      quantizer_(std::move(quantizer)) {}

Tensor Tensor::from_ints(std::span<const std::int64_t> values) {
  return from<std::int64_t>(QTN_INT64, Shape{static_cast<std::int64_t>(values.size())}, values);
}

Tensor Tensor::scalar(float value) { return from<float>(QTN_FLOAT32, Shape{}, std::span(&value, 1)); }

Tensor Tensor::view(const Shape &shape, const Shape &strides, std::ptrdiff_t element_offset) const {
  auto *base = static_cast<std::byte *>(data_);
  if (base) base += element_offset * static_cast<std::ptrdiff_t>(dtype_size(dtype_));
  return Tensor(dtype_, shape, strides, base, owner_, quantizer_);
}

Tensor Tensor::reshaped(const Shape &shape) const { return view(shape, contiguous_strides(shape)); }

Tensor Tensor::with_quantizer(QuantizerPtr quantizer) const {
  Tensor t = *this;
  t.quantizer_ = std::move(quantizer);
  return t;
}

namespace {

/// The quantizer of a view that keeps every axis but may lose, take part of, or move the channel axis.
QuantizerPtr channels_of(const QuantizerPtr &q, qscheme scheme, std::int32_t axis, std::int64_t start,
                         std::int64_t count, std::int64_t step) {
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto c = static_cast<std::size_t>(start + i * step);
    scales.push_back(q->scales()[c]);
    zero_points.push_back(q->zero_points()[c]);
  }
  return std::make_shared<Quantizer>(q->dtype(), scheme, axis, std::move(scales), std::move(zero_points),
                                     q->numerics());
}

}  // namespace

Tensor Tensor::select(std::int64_t axis, std::int64_t index) const {
  const std::size_t a = normalize_axis(axis, rank(), "select");
  if (index < -dim(a) || index >= dim(a))
    fail(QTN_EINVAL, "select: index ", index, " is outside dimension ", a, " of size ", dim(a));
  const std::int64_t at = index < 0 ? index + dim(a) : index;
  Shape shape = shape_, strides = strides_;
  shape.erase(a);
  strides.erase(a);
  Tensor t = view(shape, strides, at * strides_[a]);
  if (quantizer_ && quantizer_->per_channel()) {
    const auto channel_axis = static_cast<std::size_t>(quantizer_->axis());
    if (channel_axis == a) {
      const qscheme scheme = is_symmetric(quantizer_->scheme()) ? QTN_PER_TENSOR_SYMMETRIC : QTN_PER_TENSOR_AFFINE;
      t.quantizer_ = channels_of(quantizer_, scheme, 0, at, 1, 1);
    } else if (a < channel_axis) {
      t.quantizer_ = channels_of(quantizer_, quantizer_->scheme(), quantizer_->axis() - 1, 0, dim(channel_axis), 1);
    }
  }
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
  if (quantizer_ && quantizer_->per_channel() && static_cast<std::size_t>(quantizer_->axis()) == a) {
    if (count == 0) fail(QTN_EINVAL, "slice: a per-channel tensor cannot lose all of its channels");
    t.quantizer_ = channels_of(quantizer_, quantizer_->scheme(), quantizer_->axis(), start, count, step);
  }
  return t;
}

Tensor Tensor::permute(std::span<const std::int32_t> axes) const {
  if (axes.size() != rank()) fail(QTN_EINVAL, "permute: ", axes.size(), " axes for a tensor of rank ", rank());
  Shape shape = shape_, strides = strides_;
  std::array<bool, kMaxRank> seen{};
  std::int32_t channel_axis = 0;
  for (std::size_t i = 0; i < rank(); ++i) {
    const std::size_t from = normalize_axis(axes[i], rank(), "permute");
    if (seen[from]) fail(QTN_EINVAL, "permute: axis ", from, " is named twice");
    seen[from] = true;
    shape[i] = shape_[from];
    strides[i] = strides_[from];
    if (quantizer_ && static_cast<std::size_t>(quantizer_->axis()) == from) channel_axis = static_cast<std::int32_t>(i);
  }
  Tensor t = view(shape, strides);
  if (quantizer_ && quantizer_->per_channel() && channel_axis != quantizer_->axis())
    t.quantizer_ = channels_of(quantizer_, quantizer_->scheme(), channel_axis, 0,
                               static_cast<std::int64_t>(quantizer_->count()), 1);
  return t;
}

Tensor Tensor::to_contiguous() const { return contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  Tensor t(dtype_, shape_, quantizer_);
  copy_elements(t, *this);
  return t;
}

std::vector<std::int64_t> int_values(const Tensor &t, const char *what) {
  if (is_floating(t.dtype())) fail(QTN_EDTYPE, what, " must hold integers, not ", dtype_name(t.dtype()));
  const Tensor flat = t.to_contiguous();
  std::vector<std::int64_t> values(static_cast<std::size_t>(flat.count()));
  dispatch(flat.dtype(), [&](auto zero) {
    const auto *from = flat.as<const decltype(zero)>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(from[i]);
  });
  return values;
}

std::vector<float> float_values(const Tensor &t, const char *what) {
  if (t.dtype() != QTN_FLOAT32) fail(QTN_EDTYPE, what, " must be float32, not ", dtype_name(t.dtype()));
  const Tensor flat = t.to_contiguous();
  return {flat.as<const float>(), flat.as<const float>() + flat.count()};
}

void check_quantizer_fits(const Quantizer &quantizer, const Shape &shape) {
  if (!quantizer.per_channel()) return;
  const std::size_t axis = normalize_axis(quantizer.axis(), shape.size(), "quantizer");
  if (static_cast<std::int64_t>(quantizer.count()) != shape[axis])
    fail(QTN_ESHAPE, "quantizer: ", quantizer.count(), " scales for dimension ", axis, " of a ", to_string(shape),
         " tensor");
}

namespace {

/// A per-channel axis counted from the end becomes one counted from the front, as views need it.
QuantizerPtr with_positive_axis(const QuantizerPtr &q, const Shape &shape) {
  if (!q->per_channel() || q->axis() >= 0) return q;
  const std::size_t axis = normalize_axis(q->axis(), shape.size(), "quantizer");
  return std::make_shared<Quantizer>(q->dtype(), q->scheme(), static_cast<std::int32_t>(axis), q->scales(),
                                     q->zero_points(), q->numerics());
}

}  // namespace

Tensor quantize(const Tensor &x, const QuantizerPtr &quantizer) {
  if (x.dtype() != QTN_FLOAT32 || x.quantized())
    fail(QTN_EDTYPE, "quantize: x must be float32, not ", x.quantized() ? "quantized " : "", dtype_name(x.dtype()));
  check_quantizer_fits(*quantizer, x.shape());
  const QuantizerPtr q = with_positive_axis(quantizer, x.shape());
  Tensor y(q->dtype(), x.shape(), q);
  const float *from = x.as<const float>();
  dispatch(q->dtype(), [&](auto zero) {
    using T = decltype(zero);
    T *to = y.as<T>();
    for_each_element(x, q->axis(), [&](std::int64_t offset, std::size_t channel) {
      *to++ = static_cast<T>(q->quantize(from[offset], q->per_channel() ? channel : 0));
    });
  });
  return y;
}

Tensor dequantize(const Tensor &x) {
  if (!x.quantized())
    fail(QTN_EDTYPE, "dequantize: x is a plain ", dtype_name(x.dtype()), " tensor without a quantizer");
  const Quantizer &q = *x.quantizer();
  Tensor y(QTN_FLOAT32, x.shape());
  float *to = y.as<float>();
  dispatch(x.dtype(), [&](auto zero) {
    const auto *from = x.as<const decltype(zero)>();
    for_each_element(x, q.axis(), [&](std::int64_t offset, std::size_t channel) {
      *to++ = q.dequantize(static_cast<std::int64_t>(from[offset]), q.per_channel() ? channel : 0);
    });
  });
  return y;
}

double item(const Tensor &t) {
  if (t.count() != 1) fail(QTN_ESHAPE, "item: a ", to_string(t.shape()), " tensor has ", t.count(), " elements, not 1");
  if (t.quantized()) return static_cast<double>(*dequantize(t).as<const float>());
  return dispatch(t.dtype(), [&](auto zero) { return static_cast<double>(*t.as<const decltype(zero)>()); });
}

}  // namespace qtn
