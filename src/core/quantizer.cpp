// SPDX-License-Identifier: Apache-2.0
#include "core/quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "base/error.hpp"
#include "base/find_named.hpp"
#include "core/codes.hpp"
#include "core/scheme.hpp"

namespace qtn {
namespace {

constexpr const char *kNumericsNames[] = {"fbgemm", "qnnpack", "onnx", "nvidia", "tflite"};

}  // namespace

Numerics parse_numerics(const std::string &name) {
  return static_cast<Numerics>(&find_named(kNumericsNames, name, "numerics", "name") - kNumericsNames);
}

const char *numerics_name(Numerics numerics) { return kNumericsNames[static_cast<std::size_t>(numerics)]; }

bool is_per_tensor(qscheme scheme) { return scheme == QTN_PER_TENSOR_AFFINE || scheme == QTN_PER_TENSOR_SYMMETRIC; }
bool is_per_channel(qscheme scheme) {
  return scheme == QTN_PER_CHANNEL_AFFINE || scheme == QTN_PER_CHANNEL_SYMMETRIC ||
         scheme == QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
}
bool is_per_block(qscheme scheme) { return scheme == QTN_PER_BLOCK_AFFINE || scheme == QTN_PER_BLOCK_SYMMETRIC; }

bool is_symmetric(qscheme scheme) {
  return scheme == QTN_PER_TENSOR_SYMMETRIC || scheme == QTN_PER_CHANNEL_SYMMETRIC || scheme == QTN_PER_BLOCK_SYMMETRIC;
}

namespace {

IntegerRange checked_range(qdtype dtype, const std::optional<IntegerRange> &range) {
  if (is_tiny_float(dtype)) {
    if (range) fail(QTN_EINVAL, "quantizer: a range of integers makes no sense for ", dtype_name(dtype));
    return {0, 0};
  }
  const IntegerRange whole = integer_range(dtype);
  if (!range) return whole;
  if (range->lo >= range->hi || range->lo < whole.lo || range->hi > whole.hi)
    fail(QTN_EINVAL, "quantizer: range [", range->lo, ", ", range->hi, "] is not inside ", dtype_name(dtype), " [",
         whole.lo, ", ", whole.hi, "]");
  return *range;
}

}  // namespace

Quantizer::Quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::vector<double> scales,
                     std::vector<std::int64_t> zero_points, Numerics numerics, std::int64_t block_size,
                     std::optional<IntegerRange> range)
    : dtype_(dtype),
      scheme_(scheme),
      axis_(is_per_tensor(scheme) ? 0 : axis),
      block_size_(block_size),
      scales_(std::move(scales)),
      zero_points_(std::move(zero_points)),
      numerics_(numerics) {
  if (!per_tensor() && !per_channel() && !per_block())
    fail(QTN_EINVAL, "quantizer: ", static_cast<int>(scheme), " is not a scheme");
  if (!is_quantizable(dtype)) fail(QTN_EDTYPE, "quantizer: dtype ", dtype_name(dtype), " cannot hold quantized values");
  if (per_block() ? block_size < 1 : block_size != 0)
    fail(QTN_EINVAL, "quantizer: block size ", block_size, " for a scheme ", per_block() ? "with" : "without",
         " blocks");
  range_ = checked_range(dtype, range);
  if (scales_.empty()) fail(QTN_EINVAL, "quantizer: there must be at least one scale");
  if (per_tensor() && scales_.size() != 1)
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
    if (numerics_ == Numerics::nvidia && zero_points_[i] != 0)
      fail(QTN_EUNSUPPORTED, "quantizer: nvidia numerics are symmetric, zero_point ", zero_points_[i], " at index ", i,
           " is not 0");
  }
  least_scale_ = *std::min_element(scales_.begin(), scales_.end());
  const auto [lo, hi] = std::ranges::minmax(zero_points_);
  zero_point_range_ = {lo, hi};
}

Quantizer::Quantizer(qdtype dtype, std::int32_t axis, std::vector<double> scales, std::vector<double> float_zero_points,
                     Numerics numerics, std::optional<IntegerRange> range)
    : Quantizer(dtype, QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS, axis, scales, std::vector<std::int64_t>(scales.size(), 0),
                numerics, 0, range) {
  if (dtype != QTN_UINT8 && dtype != QTN_UINT4 && dtype != QTN_UINT2)
    fail(QTN_EUNSUPPORTED, "quantizer: float zero points are for uint8, uint4 and uint2, not for ", dtype_name(dtype));
  if (rounding() != Rounding::reciprocal || divides_back())
    fail(QTN_EUNSUPPORTED, "quantizer: float zero points are of numerics fbgemm and qnnpack, not of ",
         numerics_name(numerics));
  if (float_zero_points.size() != scales_.size())
    fail(QTN_EINVAL, "quantizer: ", scales_.size(), " scales but ", float_zero_points.size(), " float zero points");
  for (std::size_t i = 0; i < float_zero_points.size(); ++i)
    if (!std::isfinite(static_cast<float>(float_zero_points[i])))
      fail(QTN_EINVAL, "quantizer: float zero point ", float_zero_points[i], " at index ", i,
           " is not a finite float32");
  float_zero_points_ = std::move(float_zero_points);
}

Rounding Quantizer::rounding() const {
  if (numerics_ == Numerics::onnx) return Rounding::division;
  return numerics_ == Numerics::tflite ? Rounding::half_away : Rounding::reciprocal;
}

float Quantizer::factor(std::size_t c) const {
  // NVIDIA's scale is the inverse itself, which the double reciprocal of its double reciprocal gives back.
  if (numerics_ == Numerics::nvidia) return static_cast<float>(1.0 / scales_[c]);
  const auto scale = static_cast<float>(scales_[c]);
  return rounding() == Rounding::reciprocal ? 1.0f / scale : scale;
}

float Quantizer::back_factor(std::size_t c) const {
  return divides_back() ? factor(c) : static_cast<float>(scales_[c]);
}

std::int64_t Quantizer::quantize(float x, std::size_t c) const {
  if (is_tiny_float(dtype_))
    return encode_float(dtype_, rounding() == Rounding::reciprocal ? x * factor(c) : x / factor(c), true);
  if (zeros_are_floats()) {
    const auto zero = static_cast<float>(float_zero_points_[c]);
    const float q = std::isnan(x) ? zero : x * factor(c) + zero;
    return static_cast<std::int64_t>(
        std::nearbyint(std::clamp(q, static_cast<float>(range_.lo), static_cast<float>(range_.hi))));
  }
  return to_grid(x, rounding(), factor(c), static_cast<std::int32_t>(zero_points_[c]),
                 static_cast<std::int32_t>(range_.lo), static_cast<std::int32_t>(range_.hi));
}

float Quantizer::dequantize(std::int64_t q, std::size_t c) const {
  if (zeros_are_floats()) return (static_cast<float>(q) - static_cast<float>(float_zero_points_[c])) * back_factor(c);
  if (!is_tiny_float(dtype_))
    return from_grid(static_cast<std::int32_t>(q), divides_back(), back_factor(c),
                     static_cast<std::int32_t>(zero_points_[c]));
  const float steps = decode_float(dtype_, static_cast<std::uint16_t>(q));
  return divides_back() ? steps / back_factor(c) : steps * back_factor(c);
}

QuantizerPtr Quantizer::regrouped(qscheme scheme, std::int32_t axis, std::int64_t block_size,
                                  std::span<const std::int64_t> numbers) const {
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;
  scales.reserve(numbers.size());
  zero_points.reserve(numbers.size());
  if (zeros_are_floats()) {
    if (scheme != scheme_)
      fail(QTN_EUNSUPPORTED, "quantizer: ", scheme_name(scheme), " has no float zero points; a slice along axis ",
           axis_, " keeps them");
    std::vector<double> zeros;
    for (const std::int64_t number : numbers) {
      scales.push_back(scales_[static_cast<std::size_t>(number)]);
      zeros.push_back(float_zero_points_[static_cast<std::size_t>(number)]);
    }
    return std::make_shared<Quantizer>(dtype_, axis, std::move(scales), std::move(zeros), numerics_, range_);
  }
  for (const std::int64_t number : numbers) {
    scales.push_back(scales_[static_cast<std::size_t>(number)]);
    zero_points.push_back(zero_points_[static_cast<std::size_t>(number)]);
  }
  const std::optional<IntegerRange> range = is_tiny_float(dtype_) ? std::nullopt : std::optional(range_);
  return std::make_shared<Quantizer>(dtype_, scheme, axis, std::move(scales), std::move(zero_points), numerics_,
                                     block_size, range);
}

bool same_grid(const Quantizer &a, const Quantizer &b) {
  return a.dtype() == b.dtype() && a.per_tensor() && b.per_tensor() && a.scales() == b.scales() &&
         a.zero_points() == b.zero_points() && a.range() == b.range();
}

bool operator==(const Quantizer &a, const Quantizer &b) {
  return a.dtype_ == b.dtype_ && a.scheme_ == b.scheme_ && a.axis_ == b.axis_ && a.block_size_ == b.block_size_ &&
         a.scales_ == b.scales_ && a.zero_points_ == b.zero_points_ && a.float_zero_points_ == b.float_zero_points_ &&
         a.numerics_ == b.numerics_ && a.range_ == b.range_;
}

}  // namespace qtn
