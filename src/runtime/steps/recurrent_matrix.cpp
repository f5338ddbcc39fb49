// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "core/integer_type.hpp"
#include "kernels/kernel.hpp"
#include "runtime/steps/recurrent.hpp"

namespace qtn::runtime {
namespace {

// What the weights of a task take of the second level of cache.
constexpr std::size_t kBlockBytes = 256 << 10;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr std::int32_t kZero = 128;  // of codes

}  // namespace

RecurrentMatrix::RecurrentMatrix(const Tensor &weight, std::size_t d, std::size_t first, std::size_t columns,
                                 std::vector<float> bias, Isa isa, const PackCache &cache)
    : rows_(kernels::choose(kernels::rows_kernels(), isa)),
      columns_(columns),
      depth_(static_cast<std::size_t>(weight.dim(2))) {
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
      rows_.join_codes({products + 2 * r * count, products + (2 * r + 1) * count, count, x.scales[row + r],
                        bias_.data() + first, y + (row + r) * y_row + first});
  }
}

}  // namespace qtn::runtime
