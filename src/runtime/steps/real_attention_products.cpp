// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/size.hpp"
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "runtime/steps/attention_products.hpp"

namespace qtn::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class RealProducts final : public AttentionProducts {
 public:
  RealProducts(const ops::Clamp &clamp, Isa isa)
      : gemm_(kernels::choose(kernels::gemm_real_kernels(), isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)),
        clamp_(clamp) {}

  const char *kernel() const override { return gemm_.name; }
  FloatMode float_mode() const override { return FloatMode::without_denormals; }
  std::size_t rows_at_once() const override { return gemm_.mr; }
  std::size_t settle(const HeadSizes &sizes) override {
    sizes_ = sizes;
    values_at_ = packed(sizes.keys, sizes.features);
    joined_at_ = values_at_ + packed(sizes.values, sizes.keys);
    const std::size_t joined = sizes.parts > 1 ? sizes.keys * std::max(sizes.features, sizes.values) : 0;
    return joined_at_ + round_up(joined * sizeof(float), kAlignment);
  }

  void pack(std::byte *scratch, std::span<const HeadPart> parts) const override {
    auto *room = reinterpret_cast<float *>(scratch + joined_at_);
    HeadMatrix keys = parts[0].keys, values = parts[0].values;
    const auto by_key = [](const HeadPart &part) { return turned(part.keys); };
    if (parts.size() > 1) keys = turned(joined(parts, sizes_.features, room, by_key));
    gemm_.pack(scratch, {keys.at, keys.column, keys.row, nullptr, sizes_.keys, sizes_.features});
    if (parts.size() > 1) values = joined(parts, sizes_.values, room, [](const HeadPart &part) { return part.values; });
    gemm_.pack(scratch + values_at_, {values.at, values.column, values.row, nullptr, sizes_.values, sizes_.keys});
  }

  void multiply_keys(std::byte *scratch, const HeadMatrix &queries, ScoreBlock block, float *scores) const override {
    multiply({queries.at, queries.row, block.queries, sizes_.features}, scratch, {block.keys, sizes_.features},
             {-kInfinity, kInfinity}, scores, static_cast<std::ptrdiff_t>(sizes_.row));
  }

  void mix_values(std::byte *scratch, float *scores, ScoreBlock block, const ScoreChange &change, float *y,
                  std::ptrdiff_t y_row) const override {
    const auto row = static_cast<std::ptrdiff_t>(sizes_.row);
    make_shares(rows_, scores, block, row, change);
    multiply({scores, row, block.queries, block.keys}, scratch + values_at_, {sizes_.values, sizes_.keys}, clamp_, y,
             y_row);
  }

 private:
  static HeadMatrix turned(const HeadMatrix &m) { return {m.at, m.column, m.row}; }

  /// The rows of all parts below one another in `to`. A copy in the order of memory is also how a cache is read at the
  /// speed of memory, which packing would not reach.
  template <class RowsOf>
  static HeadMatrix joined(std::span<const HeadPart> parts, std::size_t columns, float *to, const RowsOf &rows_of) {
    float *at = to;
    for (const HeadPart &part : parts) {
      const HeadMatrix m = rows_of(part);
      for (std::size_t row = 0; row < part.count; ++row) {
        const float *from = m.at + static_cast<std::ptrdiff_t>(row) * m.row;
        if (m.column == 1)
          at = std::copy_n(from, columns, at);
        else
          for (std::size_t c = 0; c < columns; ++c) *at++ = from[static_cast<std::ptrdiff_t>(c) * m.column];
      }
    }
    return {to, static_cast<std::ptrdiff_t>(columns), 1};
  }

  struct Rows {
    const float *at;
    std::ptrdiff_t step;
    std::size_t count, depth;
  };

  std::size_t packed(std::size_t n, std::size_t k) const {
    return round_up(gemm_.packed_bytes(n, k * sizeof(float)), kAlignment);
  }

  /// Columns of packed weights that are so deep.
  struct Columns {
    std::size_t count, depth;
  };

  /// The rows meet as much of the columns as they are deep.
  void multiply(const Rows &a, const std::byte *packed, Columns columns, const ops::Clamp &clamp, float *y,
                std::ptrdiff_t y_row) const {
    const kernels::GemmPart part{0, a.depth * sizeof(float)};
    kernels::GemmArgs args{};
    args.m = a.count;
    args.n = columns.count;
    args.k = columns.depth * sizeof(float);
    if (a.depth < columns.depth) args.part = &part;
    args.a = reinterpret_cast<const std::uint8_t *>(a.at);
    args.lda = a.step * static_cast<std::ptrdiff_t>(sizeof(float));
    args.packed = packed;
    args.y = y;
    args.ldy = y_row;
    args.lo = clamp.lo;
    args.hi = clamp.hi;
    gemm_.run(args);
  }

  const kernels::GemmRealKernel &gemm_;
  const kernels::RowsKernel &rows_;
  ops::Clamp clamp_;
  HeadSizes sizes_{};
  std::size_t values_at_ = 0, joined_at_ = 0;
};

}  // namespace

void make_shares(const kernels::RowsKernel &rows, float *scores, ScoreBlock block, std::ptrdiff_t row,
                 const ScoreChange &change) {
  rows.score({scores, block.queries, block.keys, row, change.factor, change.addend, change.addend_row});
  if (!change.guarded) return;
  for (std::size_t i = 0; i < block.queries; ++i, scores += row)
    if (std::isnan(*scores)) std::fill_n(scores, block.keys, 0.0f);
}

std::unique_ptr<AttentionProducts> make_real_products(const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<RealProducts>(clamp, isa);
}

}  // namespace qtn::runtime
