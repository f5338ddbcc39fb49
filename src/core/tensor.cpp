// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/limits.hpp"

namespace qtn {
namespace {

std::shared_ptr<void> allocate(std::size_t nbytes) {
  AlignedBuffer buffer(nbytes);
  auto owner = std::make_shared<AlignedBuffer>(std::move(buffer));
  void *data = owner->data();
  return {std::move(owner), data};
}

}  // namespace

Tensor::Tensor(qdtype dtype, const Shape &shape, QuantizerPtr quantizer)
    : dtype_(dtype), shape_(shape), strides_(contiguous_strides(shape)), quantizer_(std::move(quantizer)) {
  const std::size_t size = nbytes();
  if (!has_strides(shape)) fail(QTN_ESHAPE, "shape: ", to_string(shape), " is too large");
  check_limit(Limit::tensor_elements, static_cast<std::size_t>(count()));
  owner_ = allocate(size);
  data_ = owner_.get();
  if (is_packed(dtype_) && size != 0) as<std::uint8_t>()[size - 1] = 0;  // what no element fills
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

Tensor Tensor::to_contiguous() const { return contiguous() ? *this : clone(); }

Tensor Tensor::in_any_order() const {
  if (contiguous()) return *this;
  std::vector<std::int32_t> axes(rank());
  std::iota(axes.begin(), axes.end(), 0);
  const auto stride = [this](std::int32_t axis) { return strides_[static_cast<std::size_t>(axis)]; };
  std::ranges::sort(axes, [&](std::int32_t a, std::int32_t b) { return stride(a) > stride(b); });
  return permute(axes).to_contiguous();
}

Tensor Tensor::clone() const {
  Tensor t(dtype_, shape_, quantizer_);
  copy_elements(t, *this);
  return t;
}

std::vector<std::int64_t> int_values(const Tensor &t, const char *what) {
  if (is_floating(t.dtype())) fail(QTN_EDTYPE, what, " must hold integers, not ", dtype_name(t.dtype()));
  const Tensor flat = to_plain(t);
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

bool equal(const Tensor &a, const Tensor &b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || a.quantized() != b.quantized()) return false;
  if (a.quantized() && !(*a.quantizer() == *b.quantizer())) return false;
  const Tensor x = to_plain(a), y = to_plain(b);
  return dispatch(x.dtype(), [&](auto zero) {
    const auto *from = x.as<const decltype(zero)>();
    return std::equal(from, from + x.count(), y.as<const decltype(zero)>());
  });
}

}  // namespace qtn
