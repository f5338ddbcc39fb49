// SPDX-License-Identifier: Apache-2.0
// Scales and zero points from observed ranges, by each of the numerics. docs/numerics.md has the sources.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "core/codes.hpp"
#include "core/quantizer.hpp"

namespace qtn {
namespace {

struct Target {
  qdtype dtype;
  bool symmetric;
  const ChooseOptions &options;

  IntegerRange whole() const { return options.range ? *options.range : integer_range(dtype); }
  bool is_signed() const { return whole().lo < 0; }
};

struct QuantRange {
  double lo, hi;
};

std::int64_t floor_half(std::int64_t v) { return v >> 1; }

/// The integers that a range is spread over. PyTorch halves both ends for reduce_range (-64..63, 0..127).
IntegerRange target_integers(const Target &t) {
  IntegerRange r = t.whole();
  if (t.options.reduce_range && t.options.numerics == Numerics::onnx && t.is_signed() && t.symmetric)
    r = {r.lo / 2, (r.hi + 1) / 2};  // ONNX Runtime: -64..64
  else if (t.options.reduce_range)
    r = {floor_half(r.lo), floor_half(r.hi)};
  else if (t.options.narrow_range && t.is_signed())
    r.lo = -r.hi;
  return r;
}

QuantRange target_range(const Target &t) {
  const IntegerRange r = target_integers(t);
  return {static_cast<double>(r.lo), static_cast<double>(r.hi)};
}

/// Under qnnpack numerics reduce_range has no effect.
ChooseOptions used_options(const ChooseOptions &options) {
  ChooseOptions used = options;
  if (options.numerics == Numerics::qnnpack) used.reduce_range = false;
  return used;
}

/// The middle of an unsigned type (128 of uint8), or of a range that was given.
std::int64_t symmetric_zero(const Target &t) {
  const IntegerRange r = t.whole();
  if (t.options.range && !t.is_signed()) return floor_half(r.lo + r.hi);
  return t.is_signed() ? 0 : floor_half(r.hi + 1);
}

/// torch.ao's observers: float32 arithmetic, scale floored at eps, zero point by division and round-half-even.
ScaleZero choose_fbgemm(const Target &t, float min, float max) {
  const QuantRange range = target_range(t);
  const auto lo = static_cast<float>(range.lo), hi = static_cast<float>(range.hi);
  const auto eps = static_cast<float>(t.options.eps);
  if (t.symmetric) return {std::max(std::max(-min, max) / ((hi - lo) / 2), eps), symmetric_zero(t)};
  const float scale = std::max((max - min) / (hi - lo), eps);
  const float zero = lo - std::nearbyint(min / scale);
  return {scale, static_cast<std::int64_t>(std::clamp(zero, lo, hi))};
}

/// ONNX Runtime's quantizer: float64 arithmetic, stored as float32; a vanishing range gives scale 1.
ScaleZero choose_onnx(const Target &t, double min, double max) {
  const QuantRange range = target_range(t);
  if (t.symmetric) {
    const double bound = std::max(std::fabs(min), std::fabs(max));
    min = -bound;
    max = bound;
  }
  double scale = (max - min) / (range.hi - range.lo);
  if (scale < static_cast<double>(std::numeric_limits<float>::min()))
    return {1.0, t.symmetric ? static_cast<std::int64_t>(std::nearbyint((range.lo + range.hi) / 2)) : 0};
  const double zero = t.symmetric ? std::nearbyint((range.lo + range.hi) / 2) : std::nearbyint(range.lo - min / scale);
  scale = static_cast<double>(static_cast<float>(scale));
  return {scale, static_cast<std::int64_t>(std::clamp(zero, range.lo, range.hi))};
}

/// tensor_quant of NVIDIA's toolkit, whose scale is the float32 quotient bound / amax: kept as its double reciprocal.
ScaleZero choose_nvidia(const Target &t, float min, float max, float bound) {
  constexpr float kVanishing = 1.0f / (1 << 24);
  if (!t.symmetric) fail(QTN_EUNSUPPORTED, "quantizer: nvidia numerics are symmetric, the scheme is affine");
  if (!is_tiny_float(t.dtype) && !t.is_signed() && min < 0)
    fail(QTN_EINVAL, "quantizer: negative values, down to ", min, ", in unsigned quantization with nvidia numerics");
  const float amax = std::max(-min, max) * static_cast<float>(t.options.scale_amax);
  if (amax <= kVanishing) return {1.0, 0};
  return {1.0 / static_cast<double>(bound / amax), 0};
}

/// TensorFlow Lite: weights [-127, 127] by amax / 127, activations from the end of the range that errs less.
ScaleZero choose_tflite(const Target &t, double min, double max) {
  const IntegerRange whole = t.whole();
  const auto lo = static_cast<double>(whole.lo), hi = static_cast<double>(whole.hi);
  if (t.symmetric) {
    if (!t.is_signed())
      fail(QTN_EUNSUPPORTED, "quantizer: tflite numerics have no symmetric scheme for ", dtype_name(t.dtype));
    const float scale = static_cast<float>(std::max(-min, max)) / static_cast<float>(hi);
    return {scale == 0 ? 1.0 : static_cast<double>(scale), 0};
  }
  const double scale = (max - min) / (hi - lo);
  if (static_cast<float>(scale) == 0) return {1.0, 0};
  const double below = std::fabs(lo) + std::fabs(min / scale), above = std::fabs(hi) + std::fabs(max / scale);
  const double zero = below < above ? lo - min / scale : hi - max / scale;
  return {static_cast<double>(static_cast<float>(scale)),
          static_cast<std::int64_t>(std::round(std::clamp(zero, lo, hi)))};
}

ScaleZero choose_float8(const Target &t, float min, float max) {
  if (!t.symmetric) fail(QTN_EUNSUPPORTED, "quantizer: ", dtype_name(t.dtype), " has symmetric schemes only");
  const float bound = largest_finite(t.dtype);
  if (t.options.numerics == Numerics::nvidia) return choose_nvidia(t, min, max, bound);
  const float scale = std::max(-min, max) / bound;
  const bool has_smallest = t.options.numerics == Numerics::fbgemm || t.options.numerics == Numerics::qnnpack;
  if (has_smallest) return {std::max(scale, static_cast<float>(t.options.eps)), 0};
  return {scale == 0 ? 1.0f : scale, 0};
}

/// What values saturate to, where that is less than the whole type.
std::optional<IntegerRange> saturation(qdtype dtype, bool symmetric, const ChooseOptions &options) {
  if (is_tiny_float(dtype) || !symmetric) return options.range;
  const IntegerRange whole = options.range ? *options.range : integer_range(dtype);
  const bool narrow =
      options.narrow_range || options.numerics == Numerics::nvidia || options.numerics == Numerics::tflite;
  if (narrow && whole.lo < 0) return IntegerRange{-whole.hi, whole.hi};
  return options.range;
}

/// torch.ao's observers for embeddings: ranges are not extended to contain 0.
QuantizerPtr choose_float_zeros(qdtype dtype, std::int32_t axis, std::span<const double> mins,
                                std::span<const double> maxs, const ChooseOptions &options) {
  if (options.block_size != 0)
    fail(QTN_EINVAL, "quantizer: block size ", options.block_size, " for a scheme without blocks");
  const ChooseOptions used = used_options(options);
  const QuantRange range = target_range({dtype, false, used});
  std::vector<double> scales, zeros;
  for (std::size_t i = 0; i < mins.size(); ++i) {
    if (!std::isfinite(mins[i]) || !std::isfinite(maxs[i]) || mins[i] > maxs[i])
      fail(QTN_EINVAL, "quantizer: range [", mins[i], ", ", maxs[i], "] is not finite and ordered");
    const auto min = static_cast<float>(mins[i]), max = static_cast<float>(maxs[i]);
    float scale = (max - min) / static_cast<float>(range.hi - range.lo);
    if (!(scale > static_cast<float>(options.eps))) scale = 1;
    scales.push_back(static_cast<double>(scale));
    zeros.push_back(static_cast<double>(-1 * min / scale));
  }
  return std::make_shared<Quantizer>(dtype, axis, std::move(scales), std::move(zeros), options.numerics, options.range);
}

}  // namespace

ScaleZero choose_scale(qdtype dtype, bool symmetric, double min, double max, const ChooseOptions &options) {
  if (!std::isfinite(min) || !std::isfinite(max) || min > max)
    fail(QTN_EINVAL, "quantizer: range [", min, ", ", max, "] is not finite and ordered");
  if (symmetric && options.reduce_range && dtype == QTN_UINT8 && options.numerics == Numerics::fbgemm)
    fail(QTN_EUNSUPPORTED, "quantizer: reduce_range with a symmetric uint8 scheme has no defined zero point");
  // Zero must be on the grid.
  min = std::min(min, 0.0);
  max = std::max(max, 0.0);
  const ChooseOptions used = used_options(options);
  const Target target{dtype, symmetric, used};
  const auto low = static_cast<float>(min), high = static_cast<float>(max);
  if (is_tiny_float(dtype)) return choose_float8(target, low, high);
  switch (options.numerics) {
    case Numerics::onnx:
      return choose_onnx(target, min, max);
    case Numerics::nvidia:
      return choose_nvidia(target, low, high, static_cast<float>(target.whole().hi));
    case Numerics::tflite:
      return choose_tflite(target, min, max);
    default:
      return choose_fbgemm(target, low, high);
  }
}

IntegerRange spread_range(qdtype dtype, bool symmetric, const ChooseOptions &options) {
  const ChooseOptions used = used_options(options);
  return target_integers({dtype, symmetric, used});
}

ScaleZero choose_fused(const IntegerRange &integers, bool symmetric, float min, float max) {
  constexpr float kSmallest = 6.1e-5f;
  if (!std::isfinite(min) || !std::isfinite(max))
    fail(QTN_EINVAL, "quantizer: range [", min, ", ", max, "] is not finite");
  const auto lo = static_cast<double>(integers.lo), hi = static_cast<double>(integers.hi);
  const bool centered = symmetric && min < 0 && max > 0;
  if (centered) {
    const auto above = static_cast<float>((integers.hi - integers.lo) / 2), below = above + 1;
    const auto step = static_cast<double>(std::max(std::fabs(min / below), std::fabs(max / above)));
    min = static_cast<float>(step * -static_cast<double>(below));
    max = static_cast<float>(step * static_cast<double>(above));
  }
  min = std::min(min, 0.0f);
  max = std::max(max, 0.0f);
  auto scale = static_cast<float>((static_cast<double>(max) - static_cast<double>(min)) / (hi - lo));
  if (scale == 0 || std::isinf(1.0f / scale)) scale = 0.1f;
  if (scale < kSmallest) {
    const float gain = kSmallest / scale;
    min *= gain;
    max *= gain;
    scale = kSmallest;
  }
  const double below = static_cast<double>(min) / static_cast<double>(scale);
  const double above = static_cast<double>(max) / static_cast<double>(scale);
  const bool from_min = std::fabs(lo) + std::fabs(below) < std::fabs(hi) + std::fabs(above);
  const double zero = centered ? (lo + hi) / 2 : from_min ? lo - below : hi - above;
  return {static_cast<double>(scale), static_cast<std::int64_t>(std::nearbyint(std::clamp(zero, lo, hi)))};
}

QuantizerPtr choose_quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::span<const double> mins,
                              std::span<const double> maxs, const ChooseOptions &options) {
  if (!is_quantizable(dtype)) fail(QTN_EDTYPE, "quantizer: dtype ", dtype_name(dtype), " cannot hold quantized values");
  // A given range that the type does not have is refused before anything is computed with it.
  if (options.range)
    Quantizer(dtype, QTN_PER_TENSOR_AFFINE, 0, {1.0}, {options.range->lo}, Numerics::onnx, 0, options.range);
  if (scheme == QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS) return choose_float_zeros(dtype, axis, mins, maxs, options);
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;
  for (std::size_t i = 0; i < mins.size(); ++i) {
    const ScaleZero chosen = choose_scale(dtype, is_symmetric(scheme), mins[i], maxs[i], options);
    scales.push_back(chosen.scale);
    zero_points.push_back(chosen.zero_point);
  }
  return std::make_shared<Quantizer>(dtype, scheme, axis, std::move(scales), std::move(zero_points), options.numerics,
                                     options.block_size, saturation(dtype, is_symmetric(scheme), options));
}

}  // namespace qtn
