// SPDX-License-Identifier: Apache-2.0
#include "core/quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"

namespace qtn {

Numerics parse_numerics(const std::string &name) {
  if (name == "fbgemm") return Numerics::fbgemm;
  if (name == "onnx") return Numerics::onnx;
  fail(QTN_EINVAL, "numerics: unknown name \"", name, "\"; known are fbgemm onnx");
}

const char *numerics_name(Numerics numerics) { return numerics == Numerics::fbgemm ? "fbgemm" : "onnx"; }

bool is_per_channel(qscheme scheme) { return scheme == QTN_PER_CHANNEL_AFFINE || scheme == QTN_PER_CHANNEL_SYMMETRIC; }

bool is_symmetric(qscheme scheme) {
  return scheme == QTN_PER_TENSOR_SYMMETRIC || scheme == QTN_PER_CHANNEL_SYMMETRIC || scheme == QTN_PER_BLOCK_SYMMETRIC;
}

namespace {

void check_scheme(qscheme scheme) {
  if (scheme == QTN_PER_BLOCK_AFFINE || scheme == QTN_PER_BLOCK_SYMMETRIC)
    fail(QTN_EUNSUPPORTED, "quantizer: per-block schemes are not supported yet");
  if (scheme < QTN_PER_TENSOR_AFFINE || scheme > QTN_PER_CHANNEL_SYMMETRIC)
    fail(QTN_EINVAL, "quantizer: ", static_cast<int>(scheme), " is not a scheme");
}

}  // namespace

Quantizer::Quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::vector<double> scales,
                     std::vector<std::int64_t> zero_points, Numerics numerics)
    : dtype_(dtype),
      scheme_(scheme),
      axis_(is_per_channel(scheme) ? axis : 0),
      scales_(std::move(scales)),
      zero_points_(std::move(zero_points)),
      numerics_(numerics) {
  check_scheme(scheme);
  if (!is_quantizable(dtype)) fail(QTN_EDTYPE, "quantizer: dtype ", dtype_name(dtype), " cannot hold quantized values");
  range_ = integer_range(dtype);
  if (scales_.empty()) fail(QTN_EINVAL, "quantizer: there must be at least one scale");
  if (!per_channel() && scales_.size() != 1)
    fail(QTN_EINVAL, "quantizer: a per-tensor scheme takes 1 scale, not ", scales_.size());
  if (zero_points_.size() != scales_.size())
    fail(QTN_EINVAL, "quantizer: ", scales_.size(), " scales but ", zero_points_.size(), " zero points");
  for (std::size_t i = 0; i < scales_.size(); ++i) {
    const double scale = scales_[i];
    // Kernels hold scales in float32, so a scale must survive there.
    if (!(scale > 0) || !std::isfinite(static_cast<float>(scale)) || static_cast<float>(scale) == 0.0f)
      fail(QTN_EINVAL, "quantizer: scale ", scale, " at index ", i, " is not a positive finite float32");
    if (zero_points_[i] < range_.lo || zero_points_[i] > range_.hi)
      fail(QTN_EINVAL, "quantizer: zero_point ", zero_points_[i], " at index ", i, " is outside ", dtype_name(dtype),
           " [", range_.lo, ", ", range_.hi, "]");
  }
}

std::int64_t Quantizer::quantize(float x, std::size_t c) const {
  const auto scale = static_cast<float>(scales_[c]);
  const std::int64_t zero = zero_points_[c];
  const float scaled = numerics_ == Numerics::onnx ? x / scale : x * (1.0f / scale);
  if (std::isnan(scaled)) return zero;
  // In double a clamp at the bounds of any integer type is exact, also where zero moves them.
  const double rounded = std::nearbyint(static_cast<double>(scaled));
  const double lo = static_cast<double>(range_.lo - zero), hi = static_cast<double>(range_.hi - zero);
  return static_cast<std::int64_t>(std::clamp(rounded, lo, hi)) + zero;
}

float Quantizer::dequantize(std::int64_t q, std::size_t c) const {
  return static_cast<float>(q - zero_points_[c]) * static_cast<float>(scales_[c]);
}

bool operator==(const Quantizer &a, const Quantizer &b) {
  return a.dtype_ == b.dtype_ && a.scheme_ == b.scheme_ && a.axis_ == b.axis_ && a.scales_ == b.scales_ &&
         a.zero_points_ == b.zero_points_ && a.numerics_ == b.numerics_;
}

namespace {

struct QuantRange {
  double lo, hi;
};

/// Integer bounds under the options; PyTorch halves both ends for reduce_range (semantics: -64..63, 0..127).
QuantRange target_range(qdtype dtype, bool symmetric, const ChooseOptions &options) {
  const IntegerRange r = integer_range(dtype);
  QuantRange range{static_cast<double>(r.lo), static_cast<double>(r.hi)};
  const bool is_signed = r.lo < 0;
  if (options.reduce_range) {
    if (options.numerics == Numerics::onnx && is_signed && symmetric)
      range = {static_cast<double>(r.lo / 2), static_cast<double>((r.hi + 1) / 2)};  // ONNX Runtime: -64..64
    else
      range = {static_cast<double>(r.lo / 2), static_cast<double>((r.hi - 1) / 2)};
  } else if (options.narrow_range && is_signed) {
    range.lo = -range.hi;
  }
  return range;
}

/// torch.ao's observers: float32 arithmetic, scale floored at eps, zero point by division and round-half-even.
ScaleZero choose_fbgemm(qdtype dtype, bool symmetric, float min, float max, const ChooseOptions &options) {
  const QuantRange range = target_range(dtype, symmetric, options);
  const auto lo = static_cast<float>(range.lo), hi = static_cast<float>(range.hi);
  const auto eps = static_cast<float>(options.eps);
  if (symmetric) {
    const float scale = std::max(std::max(-min, max) / ((hi - lo) / 2), eps);
    const std::int64_t zero = dtype == QTN_UINT8 ? 128 : dtype == QTN_UINT16 ? 32768 : 0;
    return {scale, zero};
  }
  const float scale = std::max((max - min) / (hi - lo), eps);
  const float zero = lo - std::nearbyint(min / scale);
  return {scale, static_cast<std::int64_t>(std::clamp(zero, lo, hi))};
}

/// ONNX Runtime's quantizer: float64 arithmetic, stored as float32; a vanishing range gives scale 1.
ScaleZero choose_onnx(qdtype dtype, bool symmetric, double min, double max, const ChooseOptions &options) {
  const QuantRange range = target_range(dtype, symmetric, options);
  if (symmetric) {
    const double bound = std::max(std::fabs(min), std::fabs(max));
    min = -bound;
    max = bound;
  }
  double scale = (max - min) / (range.hi - range.lo);
  if (scale < static_cast<double>(std::numeric_limits<float>::min()))
    return {1.0, symmetric ? static_cast<std::int64_t>(std::nearbyint((range.lo + range.hi) / 2)) : 0};
  const double zero = symmetric ? std::nearbyint((range.lo + range.hi) / 2) : std::nearbyint(range.lo - min / scale);
  scale = static_cast<double>(static_cast<float>(scale));
  return {scale, static_cast<std::int64_t>(std::clamp(zero, range.lo, range.hi))};
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
  if (options.numerics == Numerics::onnx) return choose_onnx(dtype, symmetric, min, max, options);
  return choose_fbgemm(dtype, symmetric, static_cast<float>(min), static_cast<float>(max), options);
}

QuantizerPtr choose_quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::span<const double> mins,
                              std::span<const double> maxs, const ChooseOptions &options) {
  check_scheme(scheme);
  if (!is_quantizable(dtype)) fail(QTN_EDTYPE, "quantizer: dtype ", dtype_name(dtype), " cannot hold quantized values");
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;
  for (std::size_t i = 0; i < mins.size(); ++i) {
    const ScaleZero chosen = choose_scale(dtype, is_symmetric(scheme), mins[i], maxs[i], options);
    scales.push_back(chosen.scale);
    zero_points.push_back(chosen.zero_point);
  }
  return std::make_shared<Quantizer>(dtype, scheme, axis, std::move(scales), std::move(zero_points), options.numerics);
}

}  // namespace qtn
