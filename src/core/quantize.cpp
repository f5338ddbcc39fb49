// SPDX-License-Identifier: Apache-2.0
// Between float32 and the integers of a quantizer, for every scheme and type: kernels of the grid family, over
// stretches of the tensor whose scales lie as these kernels want them.
#include "base/error.hpp"
#include "base/parallel.hpp"
#include "core/scales.hpp"
#include "core/tensor.hpp"
#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"

namespace qtn {
namespace {

using kernels::Cell;
using kernels::GridPer;

/// Part of a contiguous tensor: [rows][columns] from an element on, with scales from a number on.
struct Stretch {
  std::int64_t element, rows, columns, scale;
  GridPer per;
};

/// Calls visit(stretch) for the whole tensor.
template <class Visit>
void for_each_stretch(const Quantizer &q, const Shape &shape, Visit &&visit) {
  const ScaleLayout l = scale_layout(q, shape);
  if (l.outer == 0 || l.dim == 0 || l.inner == 0) return;
  if (q.per_tensor()) return visit(Stretch{0, 1, l.inner, 0, GridPer::array});
  const bool along_axis = l.inner == 1;
  if (q.per_channel() && along_axis) return visit(Stretch{0, l.outer, l.dim, 0, GridPer::column});
  if (q.per_block() && along_axis && l.dim % l.block == 0)
    return visit(Stretch{0, l.outer * (l.dim / l.block), l.block, 0, GridPer::row});
  for (std::int64_t o = 0; o < l.outer; ++o) {
    const std::int64_t element = o * l.dim * l.inner, scale = o * l.outer_step;
    if (q.per_channel()) {
      visit(Stretch{element, l.dim, l.inner, scale, GridPer::row});
    } else if (along_axis) {
      const std::int64_t whole = l.dim / l.block, rest = l.dim % l.block;
      if (whole) visit(Stretch{element, whole, l.block, scale, GridPer::row});
      if (rest) visit(Stretch{element + whole * l.block, 1, rest, scale + whole, GridPer::array});
    } else {
      for (std::int64_t i = 0; i < l.dim; ++i)
        visit(Stretch{element + i * l.inner, 1, l.inner, scale + i / l.block * l.axis_step, GridPer::column});
    }
  }
}

/// The stretch in pieces for parallel_for; of a packed type each begins on a byte where the stretch does.
template <class Run>
void in_pieces(const Stretch &s, Run &&run) {
  constexpr std::int64_t kPiece = 1 << 16;
  if (s.rows * s.columns <= 2 * kPiece) return run(s);
  const bool by_rows = s.rows > 1;
  const std::int64_t step = by_rows ? std::max<std::int64_t>(1, kPiece / s.columns) : kPiece;
  const std::int64_t count = by_rows ? s.rows : s.columns;
  parallel_for(static_cast<std::size_t>((count + step - 1) / step), [&](std::size_t piece) {
    const std::int64_t from = static_cast<std::int64_t>(piece) * step, size = std::min(step, count - from);
    Stretch part = s;
    part.element += by_rows ? from * s.columns : from;
    if (s.per == (by_rows ? GridPer::row : GridPer::column)) part.scale += from;
    (by_rows ? part.rows : part.columns) = size;
    run(part);
  });
}

Cell cell_of(qdtype dtype) {
  switch (dtype) {
    case QTN_UINT8:
      return Cell::u8;
    case QTN_INT8:
      return Cell::i8;
    case QTN_UINT16:
      return Cell::u16;
    case QTN_INT16:
      return Cell::i16;
    case QTN_UINT4:
      return Cell::u4;
    case QTN_INT4:
      return Cell::i4;
    case QTN_UINT2:
      return Cell::u2;
    case QTN_INT2:
      return Cell::i2;
    default:
      return Cell::i32;
  }
}

/// Whether every row of every stretch begins on a byte of its own.
bool rows_begin_on_bytes(const Quantizer &q, const Shape &shape) {
  if (!is_packed(q.dtype())) return true;
  const std::int64_t bits = dtype_bits(q.dtype());
  bool all = true;
  for_each_stretch(q, shape, [&](const Stretch &s) {
    all = all && s.element * bits % 8 == 0 && (s.rows == 1 || s.columns * bits % 8 == 0);
  });
  return all;
}

template <class T>
T *at_element(T *base, qdtype dtype, std::int64_t element) {
  return base + element * static_cast<std::int64_t>(dtype_bits(dtype)) / 8;
}

/// The parameters of all scales, as kernels take them.
struct Parameters {
  Parameters(const Quantizer &q, bool back) : factors(q.count()), zeros(q.count()) {
    for (std::size_t i = 0; i < q.count(); ++i) {
      factors[i] = back ? q.back_factor(i) : q.factor(i);
      zeros[i] = static_cast<std::int32_t>(q.zero_points()[i]);
    }
  }
  std::vector<float> factors;
  std::vector<std::int32_t> zeros;
};

const kernels::GridKernel &kernel() { return kernels::choose(kernels::grid_kernels(), isa()); }

/// Into a tensor of the type of the quantizer, or of the plain type that computes for it.
void quantize_integers(const Tensor &x, const Quantizer &q, const Tensor &y) {
  const Parameters parameters(q, false);
  const bool stream = y.nbytes() >= kernels::kStreamBytes;
  for_each_stretch(q, x.shape(), [&](const Stretch &stretch) {
    in_pieces(stretch, [&](const Stretch &s) {
      kernel().quantize({static_cast<std::size_t>(s.rows), static_cast<std::size_t>(s.columns),
                         x.as<const float>() + s.element, at_element(y.as<std::byte>(), y.dtype(), s.element),
                         cell_of(y.dtype()), q.rounding(), s.per, parameters.factors.data() + s.scale,
                         parameters.zeros.data() + s.scale, static_cast<std::int32_t>(q.range().lo),
                         static_cast<std::int32_t>(q.range().hi), stream});
    });
  });
}

void dequantize_integers(const Tensor &x, const Quantizer &q, const Tensor &y) {
  const Parameters parameters(q, true);
  const bool stream = y.nbytes() >= kernels::kStreamBytes;
  for_each_stretch(q, y.shape(), [&](const Stretch &stretch) {
    in_pieces(stretch, [&](const Stretch &s) {
      kernel().dequantize({static_cast<std::size_t>(s.rows), static_cast<std::size_t>(s.columns),
                           at_element(x.as<const std::byte>(), x.dtype(), s.element), y.as<float>() + s.element,
                           cell_of(x.dtype()), q.divides_back(), s.per, parameters.factors.data() + s.scale,
                           parameters.zeros.data() + s.scale, stream});
    });
  });
}

/// Calls each(element, number of its scale).
template <class Each>
void for_each_scale(const Quantizer &q, const Shape &shape, Each &&each) {
  for_each_stretch(q, shape, [&](const Stretch &s) {
    for (std::int64_t r = 0; r < s.rows; ++r)
      for (std::int64_t c = 0; c < s.columns; ++c) {
        const std::int64_t step = s.per == GridPer::row ? r : s.per == GridPer::column ? c : 0;
        each(s.element + r * s.columns + c, static_cast<std::size_t>(s.scale + step));
      }
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
  if (q->zeros_are_floats()) {
    const Tensor bytes(plain_dtype(q->dtype()), x.shape());
    for_each_scale(*q, x.shape(), [&](std::int64_t i, std::size_t number) {
      bytes.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(q->quantize(flat.as<const float>()[i], number));
    });
    return from_plain(bytes, q->dtype()).with_quantizer(q);
  }
  if (!is_tiny_float(q->dtype()) && !rows_begin_on_bytes(*q, x.shape())) {
    const Tensor bytes(plain_dtype(q->dtype()), x.shape());
    quantize_integers(flat, *q, bytes);
    return from_plain(bytes, q->dtype()).with_quantizer(q);
  }
  const Tensor y(q->dtype(), x.shape(), q);
  if (is_tiny_float(q->dtype()))
    for_each_scale(*q, x.shape(), [&](std::int64_t i, std::size_t number) {
      const std::int64_t code = q->quantize(flat.as<const float>()[i], number);
      is_packed(q->dtype()) ? y.packed().store(i, code)
                            : void(y.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(code));
    });
  else
    quantize_integers(flat, *q, y);
  return y;
}

Tensor dequantize(const Tensor &x) {
  if (!x.quantized())
    fail(QTN_EDTYPE, "dequantize: x is a plain ", dtype_name(x.dtype()), " tensor without a quantizer");
  const Quantizer &q = *x.quantizer();
  const Tensor y(QTN_FLOAT32, x.shape());
  if (q.dtype() == QTN_FLOAT4E2M1) {
    const Tensor flat = x.to_contiguous();
    for_each_scale(q, x.shape(), [&](std::int64_t i, std::size_t number) {
      y.as<float>()[i] = q.dequantize(flat.packed().load(i), number);
    });
  } else if (is_tiny_float(q.dtype()) || q.zeros_are_floats()) {
    const Tensor flat = is_packed(q.dtype()) ? to_plain(x) : x.to_contiguous();
    for_each_scale(q, x.shape(), [&](std::int64_t i, std::size_t number) {
      y.as<float>()[i] = q.dequantize(flat.as<const std::uint8_t>()[i], number);
    });
  } else {
    dequantize_integers(rows_begin_on_bytes(q, x.shape()) ? x.to_contiguous() : to_plain(x), q, y);
  }
  return y;
}

double item(const Tensor &t) {
  if (t.count() != 1) fail(QTN_ESHAPE, "item: a ", to_string(t.shape()), " tensor has ", t.count(), " elements, not 1");
  const Tensor plain = t.quantized() ? dequantize(t) : to_plain(t);
  return dispatch(plain.dtype(), [&](auto zero) { return static_cast<double>(*plain.as<const decltype(zero)>()); });
}

}  // namespace qtn
