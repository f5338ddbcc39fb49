// SPDX-License-Identifier: Apache-2.0
#include "ops/dynamic_quantizer.hpp"

#include <algorithm>
#include <cmath>

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
Range finite_range(const char *who, const float *x, std::size_t count) {
  const kernels::GridKernel &kernel = kernels::choose(kernels::grid_kernels(), isa());
  StackMemory memory;
  auto parts = memory.list<kernels::FloatRange>(std::max<std::size_t>(1, ceil_div(count, kTaskFloats)));
  parallel_for(parts.size(), [&](std::size_t i) {
    parts[i] = kernel.range(x + i * kTaskFloats, std::min(kTaskFloats, count - i * kTaskFloats));
  });
  Range range{0, 0};
  bool nan = false;
  for (const kernels::FloatRange &part : parts) {
    nan |= part.nan;
    range = {std::min(range.min, part.min), std::max(range.max, part.max)};
  }
  if (nan || !std::isfinite(range.min) || !std::isfinite(range.max))
    fail(QTN_EINVAL, who, ": x holds NaN or infinity, which has no scale");
  return range;
}

/// FBGEMM's ChooseQuantizationParams for [0, highest]. Small scales are raised, so that they invert well.
ScaleZero choose_fbgemm(Range range, double highest) {
  constexpr float kSmallest = 6.1e-5f;
  auto scale = static_cast<float>((static_cast<double>(range.max) - static_cast<double>(range.min)) / highest);
  if (scale == 0.0f || std::isinf(1.0f / scale)) scale = 0.1f;
  if (scale < kSmallest) {
    const float gain = kSmallest / scale;
    range.min *= gain;
    range.max *= gain;
    scale = kSmallest;
  }
  const double below = static_cast<double>(range.min) / static_cast<double>(scale);
  const double above = static_cast<double>(range.max) / static_cast<double>(scale);
  // Of the two ends, the one whose quotient is less in error gives the zero point.
  const double zero = std::abs(below) < highest + std::abs(above) ? -below : highest - above;
  return {static_cast<double>(scale), static_cast<std::int64_t>(std::nearbyint(std::clamp(zero, 0.0, highest)))};
}

/// DynamicQuantizeLinear. A tensor of zeros has no range; scale 1 keeps it.
ScaleZero choose_onnx(Range range) {
  const float scale = range.max / 255.0f - range.min / 255.0f;
  if (scale < 1.1754944e-38f) return {1.0, 0};
  const float exact = range.max - range.min;
  const float used = std::isfinite(exact) ? exact / 255.0f : scale;
  return {static_cast<double>(used),
          static_cast<std::int64_t>(std::nearbyint(std::clamp(0.0f - range.min / used, 0.0f, 255.0f)))};
}

}  // namespace

ScaleZero dynamic_grid(const char *who, const Tensor &x, Numerics numerics) {
  const Range range = finite_range(who, x.as<const float>(), static_cast<std::size_t>(x.count()));
  if (!is_torch(numerics)) return choose_onnx(range);
  return choose_fbgemm(range, numerics == Numerics::fbgemm ? 127 : 255);
}

QuantizerPtr dynamic_quantizer(const char *who, const Tensor &x, Numerics numerics) {
  const ScaleZero chosen = dynamic_grid(who, x, numerics);
  return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector{chosen.scale},
                                     std::vector{chosen.zero_point}, is_torch(numerics) ? numerics : Numerics::onnx);
}

}  // namespace qtn::ops
