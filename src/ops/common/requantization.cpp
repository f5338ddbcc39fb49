// SPDX-License-Identifier: Apache-2.0
#include "ops/common/requantization.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace qtn::ops {
namespace {

/// Groups of ConvTranspose share the scales along their weight's axis of filters.
double channel_scale(const Quantizer &q, std::size_t c) { return q.scales()[q.per_channel() ? c % q.count() : 0]; }

constexpr double kLeastInt32 = std::numeric_limits<std::int32_t>::min(),
                 kMostInt32 = std::numeric_limits<std::int32_t>::max();

std::int32_t saturate_int32(double v) {
  return std::isnan(v) ? 0 : static_cast<std::int32_t>(std::clamp(v, kLeastInt32, kMostInt32));
}

// Files store the bias scale as float32, so equality holds to its precision only.
bool in_accumulator_units(const Tensor &bias, const Quantizer &x, const Quantizer &w, std::size_t channels) {
  if (bias.dtype() != QTN_INT32 || !bias.quantized()) return false;
  const Quantizer &b = *bias.quantizer();
  for (std::size_t c = 0; c < channels; ++c) {
    const double unit = x.scales()[0] * channel_scale(w, c);
    if (std::abs(channel_scale(b, c) - unit) > 1e-6 * unit || b.zero_points()[b.per_channel() ? c % b.count() : 0] != 0)
      return false;
  }
  return true;
}

/// The bias of each channel in units of the products, rounded; absent where it is such integers already.
std::optional<std::vector<double>> bias_in_products(const Tensor &bias, const Quantizer &x, const Quantizer &w,
                                                    std::size_t channels) {
  if (in_accumulator_units(bias, x, w, channels)) return std::nullopt;
  const std::vector<float> values = float_values(bias.quantized() ? dequantize(bias) : bias, "bias");
  std::vector<double> units(channels);
  for (std::size_t c = 0; c < channels; ++c)
    units[c] =
        std::rint(static_cast<double>(values[values.size() == 1 ? 0 : c]) / (x.scales()[0] * channel_scale(w, c)));
  return units;
}

}  // namespace

bool is_bias_beyond_int32(const Tensor &bias, const Quantizer &x, const Quantizer &w, std::size_t channels) {
  const auto units = bias_in_products(bias, x, w, channels);
  return units && std::ranges::any_of(*units, [](double v) { return v < kLeastInt32 || v > kMostInt32; });
}

std::vector<float> conv_multipliers(const Quantizer &x, const Quantizer &w, const Quantizer *y, std::size_t channels) {
  const auto multiplier = [&](double scale) {
    const float sw = static_cast<float>(scale);
    return y ? conv_multiplier(x.scale(), sw, y->scale()) : x.scale() * sw;
  };
  if (!w.per_channel()) return std::vector<float>(channels, multiplier(w.scales()[0]));
  std::vector<float> multipliers(channels);
  for (std::size_t c = 0; c < channels; ++c) multipliers[c] = multiplier(channel_scale(w, c));
  return multipliers;
}

std::vector<std::int32_t> integer_bias(const Tensor *bias, const Quantizer &x, const Quantizer &w,
                                       std::size_t channels) {
  std::vector<std::int32_t> out(channels, 0);
  if (!bias) return out;
  const auto count = static_cast<std::size_t>(bias->count());
  if (count != channels && count != 1)
    fail(QTN_ESHAPE, "bias has ", count, " elements for ", channels, " output channels");
  if (const auto units = bias_in_products(*bias, x, w, channels)) {
    std::ranges::transform(*units, out.begin(), saturate_int32);
    return out;
  }
  const std::vector<std::int64_t> values = int_values(*bias, "bias");
  for (std::size_t c = 0; c < channels; ++c) out[c] = static_cast<std::int32_t>(values[count == 1 ? 0 : c]);
  return out;
}

QuantizedRange output_range(const Quantizer &y, const Clamp *clamp) {
  const IntegerRange whole = y.range();
  QuantizedRange range{y.zero_point(), static_cast<std::int32_t>(whole.lo), static_cast<std::int32_t>(whole.hi)};
  if (!clamp) return range;
  // Rounding is monotonic, so clamping to the rounded bounds equals clamping the reals and rounding afterwards.
  if (!std::isinf(clamp->lo)) range.lo = static_cast<std::int32_t>(y.quantize(clamp->lo));
  if (!std::isinf(clamp->hi)) range.hi = static_cast<std::int32_t>(y.quantize(clamp->hi));
  range.lo = std::min(range.lo, range.hi);
  return range;
}

Tensor all_bytes(const QuantizerPtr &q) {
  const Tensor bytes(q->dtype(), {256}, q);
  for (int byte = 0; byte < 256; ++byte) bytes.as<std::uint8_t>()[byte] = static_cast<std::uint8_t>(byte);
  return bytes;
}

Tensor run_on_bytes(const OpDef &op, const Call &call, const QuantizerPtr &y, const Clamp *clamp) {
  std::vector<Tensor> scalars(call.inputs.size());
  std::vector<const Tensor *> inputs(call.inputs.begin(), call.inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || inputs[i]->count() != 1) continue;
    // Without axes, which the result would have too.
    const bool is_on_axis = inputs[i]->quantized() && !inputs[i]->quantizer()->per_tensor();
    scalars[i] = (is_on_axis ? dequantize(*inputs[i]) : inputs[i]->to_contiguous()).reshaped({});
    inputs[i] = &scalars[i];
  }
  return run_quantized_op(op, {call.attrs, inputs, 1}, std::span(&y, 1), clamp)[0];
}

std::array<std::uint8_t, 256> table_of(const Tensor &bytes) {
  std::array<std::uint8_t, 256> table;
  std::copy_n(bytes.as<const std::uint8_t>(), table.size(), table.begin());
  return table;
}

bool is_quantized_8bit(const Tensor *t) {
  return t && t->quantized() && t->quantizer()->per_tensor() && (t->dtype() == QTN_UINT8 || t->dtype() == QTN_INT8);
}

Tensor centered(const Tensor &q) {
  const Tensor x = q.to_contiguous();
  const std::int32_t zero = q.quantizer()->zero_point();
  Tensor out(QTN_INT32, x.shape());
  const std::int64_t count = x.count();
  const auto subtract = [&](const auto *from) {
    for (std::int64_t i = 0; i < count; ++i) out.as<std::int32_t>()[i] = from[i] - zero;
  };
  x.dtype() == QTN_INT8 ? subtract(x.as<std::int8_t>()) : subtract(x.as<std::uint8_t>());
  return out;
}

void store_scaled(const Tensor &output, std::span<const float> scaled, const Clamp *clamp) {
  const QuantizedRange range = output_range(*output.quantizer(), clamp);
  // An int8 and a uint8 result have the same low eight bits, so one routine serves both.
  std::uint8_t *q = output.as<std::uint8_t>();
  constexpr std::size_t kBlock = 1 << 16;
  parallel_for(ceil_div(scaled.size(), kBlock), [&](std::size_t block) {
    const std::size_t end = std::min(scaled.size(), (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) q[i] = quantize_scaled(scaled[i], range);
  });
}

}  // namespace qtn::ops
