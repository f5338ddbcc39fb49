// SPDX-License-Identifier: Apache-2.0
// Products of two activations in float32. The right matrix is packed as weights are, a block of columns at a time, in
// the scratch of the thread which multiplies by it; a few rows are multiplied by rows of it where these lie. Both add up in
// the order of sum_blocks.hpp.
#include <algorithm>
#include <limits>

#include "base/size.hpp"
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "kernels/rows/rows.hpp"
#include "runtime/steps/stack.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

// What a packed block takes of the second level of cache.
constexpr std::size_t kBlockBytes = 256 << 10;

// So many rows at most, of so many columns, which is a vector of any instruction set.
constexpr std::size_t kFewRows = 8, kFewColumns = 4;

class RealMatMulStep final : public Step {
 public:
  RealMatMulStep(const Edge &a, const Edge &b, const Edge &y, const ops::Clamp &clamp, Isa isa)
      : kernel_(kernels::choose(kernels::gemm_real_kernels(), isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)),
        batch_(std::span(y.form.shape).first(y.form.shape.size() - 2)),
        a_(a.form, batch_),
        b_(b.form, batch_),
        m_(static_cast<std::size_t>(y.form.shape[y.form.shape.size() - 2])),
        n_(static_cast<std::size_t>(y.form.shape.back())),
        k_(static_cast<std::size_t>(a.form.shape.back())),
        clamp_(clamp) {
    if (one_matrix_serves_all()) {
      m_ *= static_cast<std::size_t>(element_count(batch_));
      batch_ = {};
    }
    by_rows_ = m_ <= kFewRows && n_ >= kFewColumns && b_.column == 1 && clamp.changes_nothing();
    const std::size_t panels = ceil_div(n_, kernel_.nr);
    const std::size_t fit =
        std::max<std::size_t>(1, kBlockBytes / std::max<std::size_t>(1, kernel_.nr * k_ * sizeof(float)));
    block_ = std::min(fit, panels) * kernel_.nr;
    kernel = kernel_.name;
    float_mode = FloatMode::without_denormals;
    reads = {a.slot, b.slot};
    writes = {y.slot};
    macs = element_count(y.form.shape) * static_cast<std::int64_t>(k_);
  }

  std::size_t lane_bytes() const override {
    if (by_rows_) return 0;
    return round_up(kernel_.packed_bytes(std::min(block_, n_), k_ * sizeof(float)), kAlignment);
  }

  void run(const Context &c) const override {
    const auto *a = c.tensor(reads[0]).as<const float>(), *b = c.tensor(reads[1]).as<const float>();
    auto *y = c.tensor(writes[0]).as<float>();
    const std::size_t blocks = ceil_div(n_, block_);
    const auto count = static_cast<std::size_t>(element_count(batch_)) * blocks;
    for_chunks(c, count, static_cast<std::size_t>(macs) / 100, [&](std::size_t lane, std::size_t chunk) {
      const auto i = static_cast<std::int64_t>(chunk / blocks);
      const std::size_t column = chunk % blocks * block_;
      multiply({a + a_.offset(batch_, i), b + b_.offset(batch_, i) + static_cast<std::ptrdiff_t>(column) * b_.column,
                std::min(block_, n_ - column), y + static_cast<std::size_t>(i) * m_ * n_ + column},
               c.lane_scratch(lane));
    });
  }

 private:
  /// Some columns of one product.
  struct Part {
    const float *left, *right;
    std::size_t columns;
    float *y;
  };

  /// Whether the left matrices follow one another as the rows of a single one, and the right matrix is the same.
  bool one_matrix_serves_all() const {
    std::ptrdiff_t step = static_cast<std::ptrdiff_t>(m_) * a_.row;
    for (std::size_t axis = batch_.size(); axis-- > 0; step *= batch_[axis])
      if (batch_[axis] > 1 && (b_.strides[axis] != 0 || a_.strides[axis] != step)) return false;
    return true;
  }

  void multiply(const Part &part, std::byte *scratch) const {
    if (by_rows_)
      rows_.mixtures(
          {part.left, a_.row, m_, part.right, b_.row, part.columns, k_, part.y, static_cast<std::ptrdiff_t>(n_)});
    else
      multiply_packed(part, scratch);
  }

  void multiply_packed(const Part &part, std::byte *packed) const {
    kernel_.pack(packed, {part.right, b_.column, b_.row, nullptr, part.columns, k_});
    kernels::GemmArgs args{};
    args.m = m_;
    args.n = part.columns;
    args.k = k_ * sizeof(float);
    args.a = reinterpret_cast<const std::uint8_t *>(part.left);
    args.lda = a_.row * static_cast<std::ptrdiff_t>(sizeof(float));
    args.packed = packed;
    args.y = part.y;
    args.ldy = static_cast<std::ptrdiff_t>(n_);
    args.lo = clamp_.lo;
    args.hi = clamp_.hi;
    kernel_.run(args);
  }

  const kernels::GemmRealKernel &kernel_;
  const kernels::RowsKernel &rows_;
  Shape batch_;
  Stack a_, b_;
  std::size_t m_, n_, k_, block_;
  ops::Clamp clamp_;
  bool by_rows_;
};

}  // namespace

StepPtr make_real_matmul(const Edge &a, const Edge &b, const Edge &y, const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<RealMatMulStep>(a, b, y, clamp, isa);
}

}  // namespace qtn::runtime
