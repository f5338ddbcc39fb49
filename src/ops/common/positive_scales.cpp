// SPDX-License-Identifier: Apache-2.0
#include "ops/common/positive_scales.hpp"

#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "core/scales.hpp"

namespace qtn::ops {
namespace {

std::vector<double> positive(std::span<const float> scales) {
  std::vector<double> magnitudes(scales.begin(), scales.end());
  for (double &scale : magnitudes) scale = scale == 0 ? 1.0 : std::fabs(scale);
  return magnitudes;
}

/// What the integers of each scale become: (q & kept) ^ flipped.
struct Changes {
  Changes(qdtype dtype, std::span<const float> scales, std::span<const std::int64_t> given)
      : kept(scales.size(), -1), flipped(scales.size(), 0), zeros(given.begin(), given.end()) {
    for (std::size_t i = 0; i < scales.size(); ++i)
      if (scales[i] == 0) {
        if (dtype_bits(dtype) > 8) zeros[i] = 0;
        kept[i] = 0;
        flipped[i] = static_cast<std::int8_t>(zeros[i]);
      } else if (scales[i] < 0) {
        const IntegerRange range = integer_range(dtype);
        flipped[i] = -1;
        zeros[i] = range.lo + range.hi - zeros[i];
      }
  }

  /// Those of `count` bytes: all of scale number `scale`, or each of the next one.
  void apply_one(std::int8_t *q, std::int64_t count, std::size_t scale) const {
    const std::int8_t mask = kept[scale], flip = flipped[scale];
    for (std::int64_t i = 0; i < count; ++i) q[i] = static_cast<std::int8_t>((q[i] & mask) ^ flip);
  }
  void apply_each(std::int8_t *q, std::int64_t count, std::size_t scale) const {
    const std::int8_t *masks = kept.data() + scale, *flips = flipped.data() + scale;
    for (std::int64_t i = 0; i < count; ++i) q[i] = static_cast<std::int8_t>((q[i] & masks[i]) ^ flips[i]);
  }

  std::vector<std::int8_t> kept, flipped;
  std::vector<std::int64_t> zeros;
};

/// Elements in the type that they have. Scales are negative only where this is one of integers of up to 8 bits.
Tensor complemented(const Tensor &integers, std::span<const float> scales, std::span<const std::int64_t> zeros,
                    std::size_t axis, std::int64_t block, Numerics numerics) {
  const Changes changes(integers.dtype(), scales, zeros);
  const qscheme scheme = block                ? QTN_PER_BLOCK_AFFINE
                         : scales.size() == 1 ? QTN_PER_TENSOR_AFFINE
                                              : QTN_PER_CHANNEL_AFFINE;
  const auto q = std::make_shared<Quantizer>(integers.dtype(), scheme, static_cast<std::int32_t>(axis),
                                             positive(scales), changes.zeros, numerics, block);
  const Tensor codes = integers.clone().with_quantizer(q);
  const ScaleLayout l = scale_layout(*q, codes.shape());
  const bool along_axis = l.inner == 1, each = l.inner_step && !along_axis;
  const std::int64_t rows = along_axis ? l.block : 1;
  const auto size = static_cast<std::int64_t>(is_packed(codes.dtype()) ? 1 : storage_nbytes(codes.dtype(), 1));
  CountedVector<std::int8_t> unpacked;
  if (is_packed(codes.dtype()))
    unpacked.resize(static_cast<std::size_t>(along_axis ? std::min(l.block, l.dim) : l.inner));
  for (std::int64_t o = 0; o < l.outer; ++o)
    for (std::int64_t i = 0; i < l.dim; i += rows) {
      const std::int64_t first = (o * l.dim + i) * l.inner, count = along_axis ? std::min(rows, l.dim - i) : l.inner;
      const auto scale = static_cast<std::size_t>(o * l.outer_step + i / l.block * l.axis_step);
      std::int8_t *run = unpacked.empty() ? static_cast<std::int8_t *>(codes.data()) + first * size : unpacked.data();
      if (!unpacked.empty()) codes.packed().load_run(first, count, run);
      if (!each)
        changes.apply_one(run, count * size, scale);
      else if (size == 1)
        changes.apply_each(run, count, scale);
      else
        for (std::int64_t j = 0; j < count; ++j)
          changes.apply_one(run + j * size, size, scale + static_cast<std::size_t>(j));
      if (!unpacked.empty()) codes.packed().store_run(first, count, run);
    }
  return codes;
}

qdtype signed_type(qdtype dtype) {
  const unsigned bits = dtype_bits(dtype);
  return bits == 2 ? QTN_INT2 : bits == 4 ? QTN_INT4 : QTN_INT8;
}

bool holds(qdtype dtype, std::int64_t least, std::int64_t most) {
  const IntegerRange range = integer_range(dtype);
  return least >= range.lo && most <= range.hi;
}

}  // namespace

Tensor on_positive_scales(const Tensor &integers, std::span<const float> scales, std::span<const std::int64_t> zeros,
                          std::size_t axis, std::int64_t block, Numerics numerics) {
  const bool negates = std::ranges::any_of(scales, [](float s) { return s < 0; });
  const bool complements = !negates || (!is_floating(integers.dtype()) && dtype_bits(integers.dtype()) <= 8 &&
                                        numerics != Numerics::nvidia);  // which has no zero points
  if (complements && (block || !negates)) return complemented(integers, scales, zeros, axis, block, numerics);
  const Shape &shape = integers.shape();
  const bool one = scales.size() == 1 && block == 0;
  const std::int64_t inner = one ? 1 : element_count(shape, axis + 1, shape.size()), dim = one ? 1 : shape[axis],
                     span = block == 0 ? 1 : block, parts = dim / span + (dim % span != 0);
  const std::vector<std::int64_t> codes = int_values(integers, "integers");
  const Tensor bytes(QTN_INT8, shape), reals(QTN_FLOAT32, shape);
  std::int64_t least = 0, most = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t row = at / (inner * dim), along = at / inner % dim;
    const auto of = static_cast<std::size_t>(one          ? 0
                                             : block == 0 ? along
                                                          : (row * parts + along / span) * inner + at % inner);
    const std::int64_t steps = codes[i] - zeros[of], code = scales[of] < 0 ? -steps : scales[of] > 0 ? steps : 0;
    least = std::min(least, code), most = std::max(most, code);
    bytes.as<std::int8_t>()[i] = static_cast<std::int8_t>(std::clamp<std::int64_t>(code, -128, 127));
    reals.as<float>()[i] = static_cast<float>(steps) * scales[of];
  }
  const qdtype narrow = signed_type(integers.dtype()), dtype = holds(narrow, least, most) ? narrow : QTN_INT8;
  if (!holds(dtype, least, most))
    return one && complements ? complemented(integers, scales, zeros, axis, block, numerics) : reals;
  const qscheme scheme = one          ? QTN_PER_TENSOR_SYMMETRIC
                         : block == 0 ? QTN_PER_CHANNEL_SYMMETRIC
                                      : QTN_PER_BLOCK_SYMMETRIC;
  return from_plain(bytes, dtype)
      .with_quantizer(std::make_shared<Quantizer>(dtype, scheme, static_cast<std::int32_t>(one ? 0 : axis),
                                                  positive(scales), std::vector<std::int64_t>(scales.size(), 0),
                                                  numerics, block));
}

Tensor reals_of(const Tensor &t) { return t.quantized() ? dequantize(t) : t; }

}  // namespace qtn::ops
