// SPDX-License-Identifier: Apache-2.0
// The mapping real = (q - zero_point) * scale: which integers, which scales, and whose rounding rule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rounding.hpp"
#include "core/dtype.hpp"

namespace qtn {

/// The field's conventions for scales, rounding and ranges differ; each has its name. docs/numerics.md has the
/// formulas.
enum class Numerics {
  fbgemm,   ///< PyTorch, FBGEMM: times the float32 reciprocal of the scale
  qnnpack,  ///< PyTorch, QNNPACK: the same, and reduce_range has no effect
  onnx,     ///< ONNX QuantizeLinear, ONNX Runtime: divided by the scale
  nvidia,   ///< NVIDIA's toolkit: symmetric, times max / amax; [-max, max]
  tflite,   ///< TensorFlow Lite: divided by the scale, ties away from zero; symmetric: [-max, max]
};
Numerics parse_numerics(const std::string &name);
const char *numerics_name(Numerics numerics);

bool is_per_tensor(qscheme scheme);
bool is_per_channel(qscheme scheme);
bool is_per_block(qscheme scheme);
bool is_symmetric(qscheme scheme);

class Quantizer;
using QuantizerPtr = std::shared_ptr<const Quantizer>;

class Quantizer {
 public:
  /// `range`: the integers that values saturate to, the whole dtype unless given. Throws QTN_EINVAL unless scales are
  /// positive and finite, zero points lie in the range, counts agree (1 for per-tensor schemes) and the block size is
  /// positive for per-block schemes; QTN_EUNSUPPORTED for a combination that the numerics do not have.
  Quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::vector<double> scales,
            std::vector<std::int64_t> zero_points, Numerics numerics, std::int64_t block_size = 0,
            std::optional<IntegerRange> range = {});

  /// A quantizer of the scheme with float zero points: real = (q - zero_point) * scale, q = round(x / scale +
  /// zero_point). Throws QTN_EINVAL as the other, QTN_EUNSUPPORTED except for unsigned types of up to 8 bits and
  /// PyTorch's numerics.
  Quantizer(qdtype dtype, std::int32_t axis, std::vector<double> scales, std::vector<double> float_zero_points,
            Numerics numerics, std::optional<IntegerRange> range = {});

  qdtype dtype() const { return dtype_; }
  qscheme scheme() const { return scheme_; }
  std::int32_t axis() const { return axis_; }  ///< 0 for per-tensor schemes; negative: counted from the last
  bool per_tensor() const { return is_per_tensor(scheme_); }
  bool per_channel() const { return is_per_channel(scheme_); }
  bool per_block() const { return is_per_block(scheme_); }
  std::int64_t block_size() const { return block_size_; }  ///< 0 where there are no blocks
  std::size_t count() const { return scales_.size(); }
  const std::vector<double> &scales() const { return scales_; }
  const std::vector<std::int64_t> &zero_points() const { return zero_points_; }        ///< 0 where they are floats
  const std::vector<double> &float_zero_points() const { return float_zero_points_; }  ///< none where they are integers
  double least_scale() const { return least_scale_; }
  const IntegerRange &zero_point_range() const { return zero_point_range_; }
  bool zeros_are_floats() const { return !float_zero_points_.empty(); }
  Numerics numerics() const { return numerics_; }
  const IntegerRange &range() const { return range_; }  ///< of a float8 dtype 0 to 0, where the zero point is

  /// The scale of a per-tensor quantizer, as kernels use it.
  float scale() const { return static_cast<float>(scales_[0]); }
  std::int32_t zero_point() const { return static_cast<std::int32_t>(zero_points_[0]); }

  /// How values come onto the grid and back, in the terms of base/rounding.hpp.
  Rounding rounding() const;
  bool divides_back() const { return numerics_ == Numerics::nvidia; }
  float factor(std::size_t c) const;       ///< of the way onto the grid
  float back_factor(std::size_t c) const;  ///< of the way back

  /// One value under scale number c: the integer, or the bit pattern of a float8. NaN becomes the zero point (float8:
  /// stays NaN).
  std::int64_t quantize(float x, std::size_t c = 0) const;
  float dequantize(std::int64_t q, std::size_t c = 0) const;

  /// The same mapping with other scales: those of these numbers, in this order.
  QuantizerPtr regrouped(qscheme scheme, std::int32_t axis, std::int64_t block_size,
                         std::span<const std::int64_t> numbers) const;

  friend bool operator==(const Quantizer &a, const Quantizer &b);

 private:
  qdtype dtype_;
  qscheme scheme_;
  std::int32_t axis_;
  std::int64_t block_size_;
  std::vector<double> scales_;
  std::vector<std::int64_t> zero_points_;
  std::vector<double> float_zero_points_;
  Numerics numerics_;
  IntegerRange range_;
  double least_scale_ = 0;
  IntegerRange zero_point_range_;
};

/// Whether both are per tensor and give every integer the same meaning.
bool same_grid(const Quantizer &a, const Quantizer &b);

/// How a scale and a zero point follow from an observed range.
struct ChooseOptions {
  Numerics numerics = Numerics::fbgemm;
  bool reduce_range = false;            ///< one bit less (7 for 8)
  bool narrow_range = false;            ///< symmetric signed types stop at -max: [-127, 127]
  double eps = 1.1920928955078125e-07;  ///< smallest scale under fbgemm and qnnpack numerics
  std::int64_t block_size = 0;          ///< of per-block schemes
  std::optional<IntegerRange> range;    ///< integers to use instead of the whole dtype
  double scale_amax = 1;                ///< of nvidia numerics: the grid is over so many times the largest magnitude
};

/// The affine or symmetric parameters of one channel whose values lie in [min, max].
struct ScaleZero {
  double scale;
  std::int64_t zero_point;
};
ScaleZero choose_scale(qdtype dtype, bool symmetric, double min, double max, const ChooseOptions &options);

/// The integers that it spreads a range over.
IntegerRange spread_range(qdtype dtype, bool symmetric, const ChooseOptions &options);

/// fbgemm::ChooseQuantizationParams, by which PyTorch's fused_moving_avg_obs_fake_quant has its grids: symmetric ones
/// ("preserve_sparsity") over [-128 s, 127 s] where values have both signs, affine where they have one.
ScaleZero choose_fused(const IntegerRange &integers, bool symmetric, float min, float max);

/// A quantizer from observed ranges, one for each scale. Throws QTN_EINVAL on min > max or a non-finite bound.
QuantizerPtr choose_quantizer(qdtype dtype, qscheme scheme, std::int32_t axis, std::span<const double> mins,
                              std::span<const double> maxs, const ChooseOptions &options);

}  // namespace qtn
