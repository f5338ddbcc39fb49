// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#include "core/integer_type.hpp"
#include "kernels/kernel.hpp"
#include "runtime/steps/recurrent.hpp"

namespace qtn::runtime {
namespace {

// What the weights of a task take of the second level of cache.
constexpr std::size_t kBlockBytes = 256 << 10;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Codes are 128 * high + low with halves around 0: the largest of both is 127 * 128 + 63.
constexpr float kMostCode = 16319;
constexpr std::int32_t kLow = 128, kZero = 128;

std::int32_t bits(float x) { return std::bit_cast<std::int32_t>(x); }

/// The largest magnitude, as bits, which are ordered as magnitudes are; those of NaN come last.
std::int32_t most_bits(const float *x, std::size_t count) {
  std::int32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t magnitude = bits(x[i]) & 0x7fffffff;
    most = magnitude > most ? magnitude : most;
  }
  return most;
}

void encode_row(const float *x, std::size_t depth, float inverse, std::uint8_t *high, std::uint8_t *low) {
  constexpr float kRound = 0x1.8p23f;
  for (std::size_t i = 0; i < depth; ++i) {
    const std::int32_t code = bits(x[i] * inverse + kRound) - bits(kRound);
    const std::int32_t upper = (code + kLow / 2) >> 7;
    high[i] = static_cast<std::uint8_t>(upper + kZero);
    low[i] = static_cast<std::uint8_t>(code - upper * kLow + kZero);
  }
}

/// y = (high * 128 + low) * scale + bias
void join(const float *high, const float *low, float scale, const float *bias, std::size_t count, float *y) {
  for (std::size_t i = 0; i < count; ++i) y[i] = (high[i] * static_cast<float>(kLow) + low[i]) * scale + bias[i];
}

}  // namespace

void encode(const RecurrentRows &rows, std::size_t count, std::size_t depth) {
  constexpr float kLeast = 0x1p-100f;  // below it the inverse of a scale may be infinite, and a row is as good as 0
  for (std::size_t r = 0; r < count; ++r) {
    const float *x = rows.x + r * depth;
    const auto most = std::bit_cast<float>(most_bits(x, depth));
    const bool finite = most < kInfinity;
    rows.scales[r] = finite ? most / kMostCode : std::numeric_limits<float>::quiet_NaN();
    std::uint8_t *high = rows.codes + 2 * r * depth;
    if (finite && most >= kLeast)
      encode_row(x, depth, kMostCode / most, high, high + depth);
    else
      std::fill_n(high, 2 * depth, static_cast<std::uint8_t>(kZero));
  }
}

RecurrentMatrix::RecurrentMatrix(const Tensor &weight, std::size_t d, std::size_t first, std::size_t columns,
                                 std::vector<float> bias, Isa isa, const PackCache &cache)
    : columns_(columns), depth_(static_cast<std::size_t>(weight.dim(2))) {
  if (weight.quantized()) {
    bias_ = std::move(bias);
    pack_integers(weight, d, first, isa, cache);
    return;
  }
  reals_ = &kernels::choose(kernels::gemm_real_kernels(), isa);
  const float *from = weight.as<const float>() + (d * static_cast<std::size_t>(weight.dim(1)) + first) * depth_;
  packed_ = cache(0, [&] {
    PackedWeights packed;
    packed.bytes = AlignedBuffer(reals_->packed_bytes(columns, depth_ * sizeof(float)));
    reals_->pack(packed.bytes.data(), {from, static_cast<std::ptrdiff_t>(depth_), 1, bias.data(), columns, depth_});
    return packed;
  });
}

void RecurrentMatrix::pack_integers(const Tensor &weight, std::size_t d, std::size_t first, Isa isa,
                                    const PackCache &cache) {
  const Tensor bytes = in_integer_type(weight, QTN_INT8);
  const std::vector<double> &scales = weight.quantizer()->scales();
  const std::int8_t *from =
      bytes.as<const std::int8_t>() + (d * static_cast<std::size_t>(weight.dim(1)) + first) * depth_;
  const std::size_t first_scale =
      first + (weight.quantizer()->per_block() ? d * static_cast<std::size_t>(weight.dim(1)) : 0);
  std::vector<std::int32_t> zeros(columns_);
  std::vector<float> multipliers(columns_);
  for (std::size_t c = 0; c < columns_; ++c) {
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < depth_; ++k) sum += from[c * depth_ + k];
    zeros[c] = -kZero * sum;
    multipliers[c] = static_cast<float>(scales[scales.size() == 1 ? 0 : first_scale + c]);
  }
  const kernels::GemmWeights w{from,  static_cast<std::ptrdiff_t>(depth_), zeros.data(), multipliers.data(), columns_,
                               depth_};
  integers_ = &kernels::choose(kernels::gemm_kernels(), isa, [&](const kernels::GemmKernel &k) { return k.fits(w); });
  packed_ = cache(0, [&] {
    PackedWeights packed;
    packed.bytes = AlignedBuffer(integers_->packed_bytes(columns_, depth_));
    integers_->pack(packed.bytes.data(), w);
    return packed;
  });
}

const kernels::GemmForm &RecurrentMatrix::form() const {
  if (integers_) return *integers_;
  return *reals_;
}

std::size_t RecurrentMatrix::block() const {
  const std::size_t panel = form().nr * depth_ * element();
  return std::max<std::size_t>(1, kBlockBytes / std::max<std::size_t>(1, panel)) * form().nr;
}

std::size_t RecurrentMatrix::kernel_bytes() const {
  return round_up(integers_->scratch_bytes(std::max<std::size_t>(2, form().mr), depth_), kAlignment);
}

/// For integers that of the kernel, and products of as many halves of rows as a tile has.
std::size_t RecurrentMatrix::scratch_bytes() const {
  if (!integers_) return 0;
  return kernel_bytes() + round_up(std::max<std::size_t>(2, form().mr) * columns_ * sizeof(float), kAlignment);
}

void RecurrentMatrix::multiply(const RecurrentRows &x, std::size_t rows, std::size_t first, std::size_t count, float *y,
                               std::size_t y_row, std::byte *scratch) const {
  kernels::GemmArgs args{};
  args.n = count;
  args.k = depth_ * element();
  args.lda = static_cast<std::ptrdiff_t>(args.k);
  args.packed = packed_->bytes.data() + form().packed_bytes(first, args.k);
  args.lo = -kInfinity;
  args.hi = kInfinity;
  if (!integers_) {
    args.m = rows;
    args.a = reinterpret_cast<const std::uint8_t *>(x.x);
    args.y = y + first;
    args.ldy = static_cast<std::ptrdiff_t>(y_row);
    return reals_->run(args);
  }
  auto *products = reinterpret_cast<float *>(scratch + kernel_bytes());
  const std::size_t at_once = std::max<std::size_t>(1, form().mr / 2);
  args.scratch = scratch;
  args.y = products;
  args.ldy = static_cast<std::ptrdiff_t>(count);
  for (std::size_t row = 0; row < rows; row += at_once) {
    const std::size_t some = std::min(at_once, rows - row);
    args.m = 2 * some;
    args.a = x.codes + 2 * row * depth_;
    integers_->run_f32(args);
    for (std::size_t r = 0; r < some; ++r)
      join(products + 2 * r * count, products + (2 * r + 1) * count, x.scales[row + r], bias_.data() + first, count,
           y + (row + r) * y_row + first);
  }
}

}  // namespace qtn::runtime
