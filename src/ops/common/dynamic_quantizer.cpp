// SPDX-License-Identifier: Apache-2.0
#include "ops/common/dynamic_quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/stack_memory.hpp"
#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"

namespace qtn::ops {
namespace {

constexpr std::size_t kTaskFloats = std::size_t{1} << 18;

bool is_torch(Numerics numerics) { return numerics == Numerics::fbgemm || numerics == Numerics::qnnpack; }

struct Range {
  float min, max;
};

/// Extended to 0.
Range finite_range(const char *who, std::span<const float> x) {
  const std::size_t count = x.size();
  const kernels::GridKernel &kernel = kernels::choose(kernels::grid_kernels(), isa());
  StackMemory memory;
  auto parts = memory.list<kernels::FloatRange>(std::max<std::size_t>(1, ceil_div(count, kTaskFloats)));
  parallel_for(parts.size(), [&](std::size_t i) {
    parts[i] = kernel.range(x.data() + i * kTaskFloats, std::min(kTaskFloats, count - i * kTaskFloats));
  });
  Range range{0, 0};
  bool nan = false;
  for (const kernels::FloatRange &part : parts) {
    nan |= part.nan;
    range = {std::min(range.min, part.min), std::max(range.max, part.max)};
  }
  if (nan || !std::isfinite(range.min) || !std::isfinite(range.max)) fail_without_scale(who);
  return range;
}

/// Integers that a range is spread over.
struct Target {
  double lo, hi;
};

Target target_of(qdtype dtype, bool reduce_range) {
  const double count = reduce_range ? 128 : 256, lo = dtype == QTN_INT8 ? -count / 2 : 0;
  return {lo, lo + count - 1};
}

/// ChooseQuantizationParams of FBGEMM, as ATen has it: scales are doubles until they are used. Small ones are raised,
/// so that they invert well.
ScaleZero choose_torch(Range range, const Target &target) {
  constexpr float kSmallest = 6.1e-5f;
  double scale = (static_cast<double>(range.max) - static_cast<double>(range.min)) / (target.hi - target.lo);
  const auto used = static_cast<float>(scale);
  if (used == 0.0f || std::isinf(1.0f / used)) scale = 0.1;
  if (scale < static_cast<double>(kSmallest)) {
    const float gain = kSmallest / static_cast<float>(scale);
    range.min *= gain;
    range.max *= gain;
    scale = static_cast<double>(kSmallest);
  }
  const double below = static_cast<double>(range.min) / scale, above = static_cast<double>(range.max) / scale;
  // The end whose quotient has the smaller error gives the zero point.
  const bool from_min = std::abs(target.lo) - std::abs(below) < std::abs(target.hi) - std::abs(above);
  const double zero = from_min ? target.lo - below : target.hi - above;
  return {scale, static_cast<std::int64_t>(std::nearbyint(std::clamp(zero, target.lo, target.hi)))};
}

/// DynamicQuantizeLinear, over [0, highest]. A tensor of zeros has no range; scale 1 keeps it.
ScaleZero choose_onnx(Range range, float highest) {
  const float scale = range.max / highest - range.min / highest;
  if (scale < 1.1754944e-38f) return {1.0, 0};
  const float exact = range.max - range.min;
  const float used = std::isfinite(exact) ? exact / highest : scale;
  return {static_cast<double>(used),
          static_cast<std::int64_t>(std::nearbyint(std::clamp(0.0f - range.min / used, 0.0f, highest)))};
}

ScaleZero choose(Range range, qdtype dtype, Numerics numerics, bool reduce_range) {
  const Target target = target_of(dtype, reduce_range && numerics != Numerics::qnnpack);
  if (is_torch(numerics)) return choose_torch(range, target);
  // An int8 grid is the uint8 grid further down.
  ScaleZero chosen = choose_onnx(range, static_cast<float>(target.hi - target.lo));
  chosen.zero_point += static_cast<std::int64_t>(target.lo);
  return chosen;
}

std::span<const float> floats_of(const Tensor &x) { return {x.as<const float>(), static_cast<std::size_t>(x.count())}; }

}  // namespace

Granularity parse_granularity(const std::string &name) {
  if (name == "row") return Granularity::row;
  if (name == "tensor") return Granularity::tensor;
  fail(QTN_EINVAL, "granularity is \"tensor\" or \"row\", not \"", name, '"');
}

bool is_own_attr(std::string_view name) {
  return name == kNumericsAttr || name == kGranularityAttr || name == kCenteredAttr;
}

OwnGrid own_grid(const char *who, const Attrs &attrs) {
  const OwnGrid grid{parse_numerics(attrs.get_string(kNumericsAttr, "onnx")),
                     parse_granularity(attrs.get_string(kGranularityAttr, "tensor"))};
  if (!is_torch(grid.numerics) && grid.numerics != Numerics::onnx)
    fail(QTN_EUNSUPPORTED, who, ": numerics ", numerics_name(grid.numerics),
         " are not offered; offered are onnx fbgemm qnnpack");
  if (grid.granularity == Granularity::row && grid.numerics != Numerics::onnx)
    fail(QTN_EUNSUPPORTED, who, ": a grid for each row is offered under onnx numerics, not under ",
         numerics_name(grid.numerics));
  return grid;
}

void set_own_grid(Attrs &attrs, const OwnGrid &grid) {
  if (grid.numerics != Numerics::onnx) attrs.set(kNumericsAttr, numerics_name(grid.numerics));
  if (grid.granularity == Granularity::row) attrs.set(kGranularityAttr, "row");
}

ScaleZero dynamic_row_grid(const kernels::FloatRange &found) {
  const Range range{std::min(found.min, 0.0f), std::max(found.max, 0.0f)};
  if (found.nan || !std::isfinite(range.min) || !std::isfinite(range.max))
    return {std::numeric_limits<double>::quiet_NaN(), 0};
  return choose_onnx(range, 255);
}

void fail_without_scale(const char *who) { fail(QTN_EINVAL, who, ": x holds NaN or infinity, which has no scale"); }

ScaleZero dynamic_grid(const char *who, std::span<const float> x, Numerics numerics) {
  return choose(finite_range(who, x), QTN_UINT8, numerics, numerics == Numerics::fbgemm);
}

QuantizerPtr dynamic_quantizer(const char *who, const Tensor &x, Numerics numerics) {
  const ScaleZero chosen = dynamic_grid(who, floats_of(x), numerics);
  return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector{chosen.scale},
                                     std::vector{chosen.zero_point}, is_torch(numerics) ? numerics : Numerics::onnx);
}

QuantizerPtr choose_dynamic(const char *who, qdtype dtype, const Tensor &x, const ChooseOptions &options) {
  const Range range = finite_range(who, floats_of(x));
  if (is_torch(options.numerics) || options.numerics == Numerics::onnx) {
    const ScaleZero chosen = choose(range, dtype, options.numerics, options.reduce_range);
    return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{chosen.scale},
                                       std::vector{chosen.zero_point}, options.numerics);
  }
  const qscheme scheme = options.numerics == Numerics::nvidia ? QTN_PER_TENSOR_SYMMETRIC : QTN_PER_TENSOR_AFFINE;
  const double min = static_cast<double>(range.min), max = static_cast<double>(range.max);
  return choose_quantizer(dtype, scheme, 0, std::span(&min, 1), std::span(&max, 1), options);
}

}  // namespace qtn::ops
