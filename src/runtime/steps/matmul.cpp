// SPDX-License-Identifier: Apache-2.0
// Products of two activations in 8 bits. The right matrix is packed as weights are, a block of columns at a time, in the
// scratch of the thread which multiplies by it:
//
//   sum (a - za) (b - zb) = sum a b - za sum b + k za zb - zb sum a      with b and zb moved by 128 onto int8
#include <algorithm>
#include <limits>

#include "base/size.hpp"
#include "kernels/dot/dot.hpp"
#include "kernels/grid/grid.hpp"
#include "ops/common/requantization.hpp"
#include "runtime/steps/any_weights.hpp"
#include "runtime/steps/scratch_places.hpp"
#include "runtime/steps/stack.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

// What a block of the right matrix takes of the second level of cache, and rows of results before they are rounded.
constexpr std::size_t kBlockBytes = 256 << 10, kResultBytes = 128 << 10;
// Products of one chunk of few matrices: less is not worth another thread. Many are dealt out whole.
constexpr std::size_t kChunkWork = std::size_t{8} << 20;
constexpr std::int64_t kManyMatrices = 8;

class MatMulStep final : public Step {
 public:
  MatMulStep(const Edge &a, const Edge &b, const Edge &y, Isa isa)
      : gemm_(any_weights_kernel(isa)),
        dot_(kernels::choose(kernels::dot_kernels(), isa)),
        grid_(kernels::choose(kernels::grid_kernels(), isa)),
        batch_(std::span(y.form.shape).first(y.form.shape.size() - 2)),
        a_(a.form, batch_),
        b_(b.form, batch_),
        m_(static_cast<std::size_t>(y.form.shape[y.form.shape.size() - 2])),
        n_(static_cast<std::size_t>(y.form.shape.back())),
        k_(static_cast<std::size_t>(a.form.shape.back())),
        zero_a_(a.form.quantizer->zero_point()),
        zero_b_(b.form.quantizer->zero_point() - kFlip),
        multiplier_(ops::conv_multipliers(*a.form.quantizer, *b.form.quantizer, y.form.quantizer.get(), 1)[0]),
        result_(y.form.quantizer) {
    const std::size_t panel = gemm_.nr, fit = kBlockBytes / k_ / panel * panel;
    const bool many = element_count(batch_) >= kManyMatrices;
    const std::size_t worth = many ? n_ : std::max(4 * panel, kChunkWork / (m_ * k_));
    block_ = round_up(std::min({n_, std::max(panel, fit), worth}), panel);
    const std::size_t rows = kResultBytes / (block_ * sizeof(float)) / gemm_.mr * gemm_.mr;
    rows_ = std::min(round_up(m_, gemm_.mr), std::max(gemm_.mr, rows));
    at_ = Places(*this);
    kernel = gemm_.name;
    integer = true;
    reads = {a.slot, b.slot};
    writes = {y.slot};
    macs = element_count(y.form.shape) * static_cast<std::int64_t>(k_);
  }

  std::size_t lane_bytes() const override { return at_.end; }

  void run(const Context &c) const override {
    const auto *a = c.tensor(reads[0]).as<const std::uint8_t>(), *b = c.tensor(reads[1]).as<const std::uint8_t>();
    auto *y = static_cast<std::byte *>(c.tensor(writes[0]).data());
    const std::size_t blocks = ceil_div(n_, block_), element = result_ ? 1 : sizeof(float);
    const auto count = static_cast<std::size_t>(element_count(batch_)) * blocks;
    for_chunks(c, count, static_cast<std::size_t>(macs) / 200, [&](std::size_t lane, std::size_t chunk) {
      const auto i = static_cast<std::int64_t>(chunk / blocks);
      const std::size_t column = chunk % blocks * block_, columns = std::min(block_, n_ - column);
      std::byte *scratch = c.lane_scratch(lane);
      pack(b + b_.offset(batch_, i) + static_cast<std::ptrdiff_t>(column) * b_.column, columns, scratch);
      multiply(a + a_.offset(batch_, i), columns, y + (static_cast<std::size_t>(i) * m_ * n_ + column) * element,
               scratch);
    });
  }

 private:
  static constexpr std::int32_t kFlip = 128;

  /// Where things are in the scratch, in bytes.
  struct Places : ScratchPlaces {
    std::size_t packed, bytes, bias, multiplier, zeros, ones, row_sums, column_zero, results, gemm;

    Places() = default;
    explicit Places(const MatMulStep &s) {
      packed = take(s.gemm_.packed_bytes(s.block_, s.k_));
      bytes = take(s.block_ * s.k_);
      bias = take(s.block_ * sizeof(std::int32_t));
      multiplier = take(s.block_ * sizeof(float));
      zeros = take(s.block_ * sizeof(float));
      column_zero = take(s.block_ * sizeof(std::int32_t));
      ones = take(s.rows_ * sizeof(float));
      row_sums = take(s.rows_ * sizeof(std::int32_t));
      results = take(s.result_ ? s.rows_ * s.block_ * sizeof(float) : 0);
      gemm = take(s.gemm_.scratch_bytes(s.rows_, s.k_));
    }
  };

  template <class T>
  static T *in(std::byte *scratch, std::size_t at) {
    return reinterpret_cast<T *>(scratch + at);
  }

  /// Columns of the right matrix, and what goes with them.
  void pack(const std::uint8_t *b, std::size_t columns, std::byte *scratch) const {
    auto *bytes = in<std::int8_t>(scratch, at_.bytes);
    auto *bias = in<std::int32_t>(scratch, at_.bias);
    const bool by_rows = b_.column == 1;
    flip(b, by_rows ? Lines{b_.row, 1, k_, columns} : Lines{b_.column, b_.row, columns, k_}, bytes);
    std::fill_n(bias, columns, 0);
    if (by_rows)
      for (std::size_t row = 0; row < k_; ++row)
        for (std::size_t j = 0; j < columns; ++j) bias[j] += bytes[row * columns + j];
    else
      for (std::size_t j = 0; j < columns; ++j) bias[j] = dot_.sum(bytes + j * k_, k_, true);
    const std::int32_t both = static_cast<std::int32_t>(k_) * zero_a_ * zero_b_;
    for (std::size_t j = 0; j < columns; ++j) bias[j] = both - zero_a_ * bias[j];
    std::fill_n(in<float>(scratch, at_.multiplier), columns, multiplier_);
    std::fill_n(in<float>(scratch, at_.zeros), block_, 0.0f);
    std::fill_n(in<std::int32_t>(scratch, at_.column_zero), block_, zero_b_);
    std::fill_n(in<float>(scratch, at_.ones), rows_, 1.0f);
    const auto step = static_cast<std::ptrdiff_t>(by_rows ? columns : 1);
    gemm_.pack(scratch + at_.packed, {bytes, by_rows ? 1 : static_cast<std::ptrdiff_t>(k_), bias,
                                      in<float>(scratch, at_.multiplier), columns, k_, step});
  }

  /// Bytes to be read, line by line.
  struct Lines {
    std::ptrdiff_t line, element;
    std::size_t lines, elements;
  };

  static void flip(const std::uint8_t *from, const Lines &x, std::int8_t *to) {
    for (std::size_t i = 0; i < x.lines; ++i, from += x.line, to += x.elements)
      if (x.element == 1)
        for (std::size_t j = 0; j < x.elements; ++j) to[j] = static_cast<std::int8_t>(from[j] ^ 0x80);
      else
        for (std::size_t j = 0; j < x.elements; ++j)
          to[j] = static_cast<std::int8_t>(from[static_cast<std::ptrdiff_t>(j) * x.element] ^ 0x80);
  }

  void multiply(const std::uint8_t *a, std::size_t columns, std::byte *y, std::byte *scratch) const {
    auto *sums = in<std::int32_t>(scratch, at_.row_sums);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (std::size_t row = 0; row < m_; row += rows_) {
      const std::size_t rows = std::min(rows_, m_ - row);
      const std::uint8_t *from = a + static_cast<std::ptrdiff_t>(row) * a_.row;
      for (std::size_t i = 0; i < rows; ++i)
        sums[i] = zero_b_ == 0 ? 0 : dot_.sum(from + static_cast<std::ptrdiff_t>(i) * a_.row, k_, false);
      const kernels::GemmRows with{in<float>(scratch, at_.ones), sums, in<std::int32_t>(scratch, at_.column_zero),
                                   in<float>(scratch, at_.zeros), true};
      kernels::GemmArgs args{};
      args.m = rows;
      args.n = columns;
      args.k = k_;
      args.a = from;
      args.lda = a_.row;
      args.packed = scratch + at_.packed;
      args.y = result_ ? scratch + at_.results : y + row * n_ * sizeof(float);
      args.ldy = static_cast<std::ptrdiff_t>(result_ ? columns : n_);
      args.lo = -kInfinity;
      args.hi = kInfinity;
      args.scratch = scratch + at_.gemm;
      args.rows = &with;
      gemm_.run_rows(args);
      if (result_) store(in<float>(scratch, at_.results), rows, columns, y + row * n_);
    }
  }

  void store(const float *results, std::size_t rows, std::size_t columns, std::byte *y) const {
    constexpr float kOne = 1;
    const QuantizedRange range = ops::output_range(*result_, nullptr);
    const bool in_one = columns == n_;
    for (std::size_t i = 0; i < (in_one ? 1 : rows); ++i)
      grid_.quantize({1, in_one ? rows * columns : columns, results + i * columns, y + i * n_, kernels::Cell::u8,
                      Rounding::reciprocal, kernels::GridPer::array, &kOne, &range.zero, range.lo, range.hi, false});
  }

  const kernels::GemmKernel &gemm_;
  const kernels::DotKernel &dot_;
  const kernels::GridKernel &grid_;
  Shape batch_;
  Stack a_, b_;
  std::size_t m_, n_, k_, block_, rows_;
  std::int32_t zero_a_, zero_b_;
  float multiplier_;
  QuantizerPtr result_;
  Places at_;
};

}  // namespace

StepPtr make_matmul(const Edge &a, const Edge &b, const Edge &y, Isa isa) {
  return std::make_unique<MatMulStep>(a, b, y, isa);
}

}  // namespace qtn::runtime
