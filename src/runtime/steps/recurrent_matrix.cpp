// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/size.hpp"
#include "kernels/kernel.hpp"
#include "runtime/steps/recurrent.hpp"

namespace qtn::runtime {
namespace {

// What the weights of a task take of the second level of cache.
constexpr std::size_t kBlockBytes = 256 << 10;

}  // namespace

RecurrentMatrix::RecurrentMatrix(const float *weight, std::vector<float> bias, std::size_t columns, std::size_t depth,
                                 Isa isa, const PackCache &cache)
    : kernel_(&kernels::choose(kernels::gemm_real_kernels(), isa)), columns_(columns), depth_(depth) {
  packed_ = cache(0, [&] {
    PackedWeights packed;
    packed.bytes = AlignedBuffer(kernel_->packed_bytes(columns, depth * sizeof(float)));
    kernel_->pack(packed.bytes.data(), {weight, static_cast<std::ptrdiff_t>(depth), 1, bias.data(), columns, depth});
    return packed;
  });
}

std::size_t RecurrentMatrix::block() const {
  const std::size_t panel = kernel_->nr * depth_ * sizeof(float);
  return std::max<std::size_t>(1, kBlockBytes / std::max<std::size_t>(1, panel)) * kernel_->nr;
}

void RecurrentMatrix::multiply(const float *x, std::size_t rows, std::size_t first, std::size_t count, float *y,
                               std::size_t y_row) const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  kernels::GemmArgs args{};
  args.m = rows;
  args.n = count;
  args.k = depth_ * sizeof(float);
  args.a = reinterpret_cast<const std::uint8_t *>(x);
  args.lda = static_cast<std::ptrdiff_t>(args.k);
  args.packed = packed_->bytes.data() + kernel_->packed_bytes(first, args.k);
  args.y = y + first;
  args.ldy = static_cast<std::ptrdiff_t>(y_row);
  args.lo = -kInfinity;
  args.hi = kInfinity;
  kernel_->run(args);
}

}  // namespace qtn::runtime
