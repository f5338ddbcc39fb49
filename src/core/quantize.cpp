// SPDX-License-Identifier: Apache-2.0
// Between float32 and the integers of a quantizer, for every scheme and type.
#include "base/error.hpp"
#include "core/scales.hpp"
#include "core/tensor.hpp"

namespace qtn {
namespace {

/// Calls run(first element, count, first scale, scale step) for stretches of a contiguous tensor: scales either stay
/// (step 0) or go along with the elements (step 1).
template <class Run>
void for_each_run(const Quantizer &q, const Shape &shape, Run &&run) {
  const ScaleLayout l = scale_layout(q, shape);
  if (l.outer == 0 || l.dim == 0 || l.inner == 0) return;
  // Neighbours along the axis: in a row of their own scales, or in blocks of one.
  const bool along_axis = l.inner == 1;
  for (std::int64_t o = 0; o < l.outer; ++o) {
    const std::int64_t element = o * l.dim * l.inner, scale = o * l.outer_step;
    if (along_axis && l.block == 1) {
      run(element, l.dim, scale, l.axis_step);
      continue;
    }
    for (std::int64_t i = 0; i < l.dim; i += along_axis ? l.block : 1) {
      const std::int64_t count = along_axis ? std::min(l.block, l.dim - i) : l.inner;
      run(element + i * l.inner, count, scale + i / l.block * l.axis_step, along_axis ? 0 : l.inner_step);
    }
  }
}

template <class T>
void quantize_values(const Tensor &x, const Quantizer &q, T *to) {
  const float *from = x.as<const float>();
  for_each_run(q, x.shape(), [&](std::int64_t at, std::int64_t count, std::int64_t scale, std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i)
      to[at + i] = static_cast<T>(q.quantize(from[at + i], static_cast<std::size_t>(scale + i * step)));
  });
}

template <class T>
void dequantize_values(const T *from, const Quantizer &q, const Tensor &y) {
  auto *to = y.as<float>();
  for_each_run(q, y.shape(), [&](std::int64_t at, std::int64_t count, std::int64_t scale, std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i)
      to[at + i] = q.dequantize(static_cast<std::int64_t>(from[at + i]), static_cast<std::size_t>(scale + i * step));
  });
}

}  // namespace

void check_quantizer_fits(const Quantizer &quantizer, const Shape &shape) {
  if (quantizer.per_tensor()) return;
  const std::size_t axis = normalize_axis(quantizer.axis(), shape.size(), "quantizer");
  const std::int64_t wanted = element_count(scale_shape(quantizer, shape));
  if (static_cast<std::int64_t>(quantizer.count()) == wanted) return;
  if (quantizer.per_channel())
    fail(QTN_ESHAPE, "quantizer: ", quantizer.count(), " scales for dimension ", axis, " of a ", to_string(shape),
         " tensor");
  fail(QTN_ESHAPE, "quantizer: ", quantizer.count(), " scales for the ", wanted, " blocks of ", quantizer.block_size(),
       " along dimension ", axis, " of a ", to_string(shape), " tensor");
}

QuantizerPtr fitted(const QuantizerPtr &quantizer, const Shape &shape) {
  if (!quantizer) return nullptr;
  check_quantizer_fits(*quantizer, shape);
  if (quantizer->axis() >= 0) return quantizer;
  return moved_scales(quantizer, normalize_axis(quantizer->axis(), shape.size(), "quantizer"));
}

Tensor quantize(const Tensor &x, const QuantizerPtr &quantizer) {
  if (x.dtype() != QTN_FLOAT32 || x.quantized())
    fail(QTN_EDTYPE, "quantize: x must be float32, not ", x.quantized() ? "quantized " : "", dtype_name(x.dtype()));
  const QuantizerPtr q = fitted(quantizer, x.shape());
  const Tensor flat = x.to_contiguous();
  if (is_packed(q->dtype())) {
    const Tensor bytes(plain_dtype(q->dtype()), x.shape());
    quantize_values(flat, *q, bytes.as<std::int8_t>());
    return from_plain(bytes, q->dtype()).with_quantizer(q);
  }
  const Tensor y(q->dtype(), x.shape(), q);
  if (is_float8(q->dtype()))
    quantize_values(flat, *q, y.as<std::uint8_t>());
  else
    dispatch(q->dtype(), [&](auto zero) { quantize_values(flat, *q, y.as<decltype(zero)>()); });
  return y;
}

Tensor dequantize(const Tensor &x) {
  if (!x.quantized())
    fail(QTN_EDTYPE, "dequantize: x is a plain ", dtype_name(x.dtype()), " tensor without a quantizer");
  const Quantizer &q = *x.quantizer();
  const Tensor y(QTN_FLOAT32, x.shape());
  if (is_float8(q.dtype())) {
    dequantize_values(x.to_contiguous().as<const std::uint8_t>(), q, y);
    return y;
  }
  const Tensor plain = to_plain(x);
  dispatch(plain.dtype(), [&](auto zero) { dequantize_values(plain.as<const decltype(zero)>(), q, y); });
  return y;
}

double item(const Tensor &t) {
  if (t.count() != 1) fail(QTN_ESHAPE, "item: a ", to_string(t.shape()), " tensor has ", t.count(), " elements, not 1");
  const Tensor plain = t.quantized() ? dequantize(t) : to_plain(t);
  return dispatch(plain.dtype(), [&](auto zero) { return static_cast<double>(*plain.as<const decltype(zero)>()); });
}

}  // namespace qtn
