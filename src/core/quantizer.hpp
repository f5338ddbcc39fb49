// SPDX-License-Identifier: Apache-2.0
// The mapping real = (q - zero_point) * scale: which integers, which scales, and whose rounding rule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/dtype.hpp"

namespace qtn {

/// The field's rules for rounding a real to the grid differ at ties; each has its name.
enum class Numerics {
  fbgemm,  ///< q = clamp(zp + rne(x * (1/scale)))   reciprocal in float32 (PyTorch)
  onnx,    ///< q = clamp(rne(x / scale) + zp)       true division in float32 (ONNX QuantizeLinear)
};
Numerics parse_numerics(const std::string &name);
const char *numerics_name(Numerics numerics);

bool is_per_channel(qscheme scheme);
bool is_symmetric(qscheme scheme);

class Quantizer {
 public:
  /// Throws QTN_EINVAL unless scales are positive and finite, zero points lie in the dtype's range, counts agree (1 for
  /// per-tensor schemes) and the scheme is one this version stores.
  Quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::vector<double> scales,
            std::vector<std::int64_t> zero_points, Numerics numerics);

  qdtype dtype() const { return dtype_; }
  qscheme scheme() const { return scheme_; }
  std::int32_t axis() const { return axis_; }  ///< 0 for per-tensor schemes
  bool per_channel() const { return is_per_channel(scheme_); }
  std::size_t count() const { return scales_.size(); }
  const std::vector<double> &scales() const { return scales_; }
  const std::vector<std::int64_t> &zero_points() const { return zero_points_; }
  Numerics numerics() const { return numerics_; }

  /// Of a per-tensor quantizer, as kernels use them.
  float scale() const { return static_cast<float>(scales_[0]); }
  std::int32_t zero_point() const { return static_cast<std::int32_t>(zero_points_[0]); }

  /// One value under channel c. NaN becomes the zero point.
  std::int64_t quantize(float x, std::size_t c = 0) const;
  float dequantize(std::int64_t q, std::size_t c = 0) const;

  friend bool operator==(const Quantizer &a, const Quantizer &b);

 private:
  qdtype dtype_;
  qscheme scheme_;
  std::int32_t axis_;
  std::vector<double> scales_;
  std::vector<std::int64_t> zero_points_;
  Numerics numerics_;
  IntegerRange range_;
};

using QuantizerPtr = std::shared_ptr<const Quantizer>;

/// How a scale and a zero point follow from an observed range.
struct ChooseOptions {
  Numerics numerics = Numerics::fbgemm;
  bool reduce_range = false;            ///< one bit less (7 for 8)
  bool narrow_range = false;            ///< symmetric signed types stop at -max: [-127, 127]
  double eps = 1.1920928955078125e-07;  ///< smallest scale under fbgemm numerics
};

/// The affine or symmetric parameters of one channel whose values lie in [min, max].
struct ScaleZero {
  double scale;
  std::int64_t zero_point;
};
ScaleZero choose_scale(qdtype dtype, bool symmetric, double min, double max, const ChooseOptions &options);

/// A quantizer from observed ranges, one for each channel. Throws QTN_EINVAL on min > max or a non-finite bound.
QuantizerPtr choose_quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::span<const double> mins,
                              std::span<const double> maxs, const ChooseOptions &options);

}  // namespace qtn
