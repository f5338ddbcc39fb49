// SPDX-License-Identifier: Apache-2.0
#include "ops/common/integer_linear.hpp"

#include <algorithm>
#include <limits>

#include "base/parallel.hpp"
#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/requantization.hpp"

namespace qtn::ops {
namespace {

/// Products of one task: less is not worth another thread. Reading a weight counts as three.
constexpr std::size_t kTaskWork = std::size_t{4} << 20;
constexpr std::size_t kTaskFloats = std::size_t{1} << 18;

/// X as a kernel reads it: of the other signedness than the weights.
struct Operand {
  AlignedBuffer buffer;  ///< where the tensor's own memory does not serve
  const void *data;
  std::int32_t zero;
};

Operand quantized_operand(const Tensor &x, const Quantizer &grid, bool is_signed) {
  const auto count = static_cast<std::size_t>(x.count());
  // An int8 grid is the uint8 grid 128 further down.
  Operand operand{AlignedBuffer(count), nullptr, grid.zero_point() - (is_signed ? 128 : 0)};
  operand.data = operand.buffer.data();
  quantize_8bit({x.as<const float>(), count}, {grid.rounding(), grid.factor(0), operand.zero}, is_signed,
                operand.buffer.data());
  return operand;
}

Operand integer_operand(const Tensor &x, bool is_signed) {
  const std::int32_t zero = x.quantizer()->zero_point();
  if ((x.dtype() == QTN_INT8) == is_signed) return {AlignedBuffer(), x.data(), zero};
  const auto count = static_cast<std::size_t>(x.count());
  Operand operand{AlignedBuffer(count), nullptr, zero + (is_signed ? -128 : 128)};
  operand.data = operand.buffer.data();
  const auto *from = x.as<const std::uint8_t>();
  auto *to = operand.buffer.as<std::uint8_t>();
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] ^ 0x80;
  return operand;
}

/// Whether sums over `depth` with this bias stay in int32.
bool fits_int32(std::int64_t depth, std::span<const std::int32_t> bias) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::int64_t most = 0;
  for (const std::int64_t b : bias) most = std::max(most, std::abs(b));
  return most <= kMost && depth <= (kMost - most) / (255 * 255);
}

/// One for each channel; empty where all are 0.
std::vector<std::int32_t> zero_points(const Quantizer &w, std::size_t channels) {
  const std::vector<std::int64_t> &zeros = w.zero_points();
  if (std::all_of(zeros.begin(), zeros.end(), [](std::int64_t z) { return z == 0; })) return {};
  std::vector<std::int32_t> out(channels);
  for (std::size_t c = 0; c < channels; ++c) out[c] = static_cast<std::int32_t>(zeros[w.per_channel() ? c : 0]);
  return out;
}

bool is_8bit(qdtype dtype) { return dtype == QTN_UINT8 || dtype == QTN_INT8; }

}  // namespace

void quantize_8bit(std::span<const float> x, const ByteGrid &grid, bool is_signed, void *q) {
  const kernels::GridKernel &kernel = kernels::choose(kernels::grid_kernels(), isa());
  const std::int32_t lo = is_signed ? -128 : 0;
  parallel_for(ceil_div(x.size(), kTaskFloats), [&](std::size_t i) {
    const std::size_t first = i * kTaskFloats;
    kernel.quantize({.rows = 1,
                     .columns = std::min(kTaskFloats, x.size() - first),
                     .x = x.data() + first,
                     .q = static_cast<std::byte *>(q) + first,
                     .cell = is_signed ? kernels::Cell::i8 : kernels::Cell::u8,
                     .rounding = grid.rounding,
                     .per = kernels::GridPer::array,
                     .factor = &grid.factor,
                     .zero = &grid.zero,
                     .lo = lo,
                     .hi = lo + 255,
                     .stream = false});
  });
}

void multiply_columns(const kernels::DotKernel &kernel, const kernels::DotArgs &args) {
  const std::size_t columns = round_up(kTaskWork / (args.k * (args.m + 3)) + 1, 4);
  parallel_for(ceil_div(args.n, columns), [&](std::size_t i) {
    const std::size_t first = i * columns;
    kernels::DotArgs part = args;
    part.n = std::min(columns, args.n - first);
    part.w = static_cast<const std::byte *>(args.w) + static_cast<std::ptrdiff_t>(first) * args.ldw;
    part.zw = args.zw ? args.zw + first : nullptr;
    part.bias = args.bias ? args.bias + first : nullptr;
    part.multiplier = args.multiplier + first;
    part.addend = args.addend ? args.addend + first : nullptr;
    part.y = args.y + first;
    kernel.run(part);
  });
}

std::optional<Tensor> integer_linear(const Tensor &x, const Quantizer &grid, const Tensor &weight, const Tensor *bias,
                                     const QuantizerPtr &quantizer) {
  const Quantizer &wq = *weight.quantizer();
  if (wq.per_block() || !is_8bit(grid.dtype()) || !is_8bit(wq.dtype()) || (quantizer && !is_8bit(quantizer->dtype())))
    return std::nullopt;
  const auto m = static_cast<std::size_t>(x.dim(0)), k = static_cast<std::size_t>(x.dim(1)),
             n = static_cast<std::size_t>(weight.dim(0));
  if (m == 0 || n == 0 || k == 0) return std::nullopt;
  if (quantizer && bias && is_bias_beyond_int32(*bias, grid, wq, n)) return std::nullopt;
  // The integer bias of a quantized result is part of its one rounding; a float result has a better place for a bias.
  const std::vector<std::int32_t> integers =
      quantizer && bias ? integer_bias(bias, grid, wq, n) : std::vector<std::int32_t>();
  if (!fits_int32(x.dim(1), integers)) return std::nullopt;

  const bool signed_w = wq.dtype() == QTN_INT8;
  const Tensor w = weight.to_contiguous(), reals = bias ? bias->to_contiguous() : Tensor();
  const Operand operand = x.quantized() ? integer_operand(x, !signed_w) : quantized_operand(x, grid, !signed_w);
  const kernels::DotKernel &kernel = kernels::choose(kernels::dot_kernels(), isa());
  const std::vector<std::int32_t> zw = zero_points(wq, n);
  std::vector<std::int32_t> sums(zw.empty() ? 0 : m);
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = kernel.sum(static_cast<const std::byte *>(operand.data) + i * k, k, !signed_w);

  const std::vector<float> multipliers = conv_multipliers(grid, wq, quantizer.get(), n);
  const Shape shape{x.dim(0), weight.dim(0)};
  const Tensor y(QTN_FLOAT32, shape);
  multiply_columns(kernel, {.m = m,
                            .n = n,
                            .k = k,
                            .x = operand.data,
                            .ldx = x.dim(1),
                            .w = w.data(),
                            .ldw = x.dim(1),
                            .signed_w = signed_w,
                            .zx = operand.zero,
                            .zw = zw.empty() ? nullptr : zw.data(),
                            .x_sum = sums.data(),
                            .bias = integers.empty() ? nullptr : integers.data(),
                            .multiplier = multipliers.data(),
                            .addend = bias && !quantizer ? reals.as<const float>() : nullptr,
                            .y = y.as<float>(),
                            .ldy = weight.dim(0)});
  if (!quantizer) return y;
  const Tensor q(quantizer->dtype(), shape, quantizer);
  store_scaled(q, std::span(y.as<const float>(), m * n), nullptr);
  return q;
}

}  // namespace qtn::ops
