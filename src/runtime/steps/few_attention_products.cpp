// SPDX-License-Identifier: Apache-2.0
// Attention of few queries, as of a decoder that makes one token with a cache of many: packing all keys and values would
// take longer than the products do. Both are read where they lie. Only keys whose features lie apart are packed, some at
// a time. Sums have the order of sum_blocks.hpp, as those of many queries.
#include <algorithm>
#include <limits>

#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "kernels/sum_blocks.hpp"
#include "runtime/steps/attention_products.hpp"

namespace qtn::runtime {
namespace {

using kernels::kSumBlock;

class FewRealProducts final : public AttentionProducts {
 public:
  explicit FewRealProducts(Isa isa)
      : gemm_(kernels::choose(kernels::gemm_real_kernels(), isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)) {}

  const char *kernel() const override { return gemm_.name; }
  FloatMode float_mode() const override { return FloatMode::without_denormals; }
  std::size_t rows_at_once() const override { return gemm_.mr; }
  std::size_t settle(const HeadSizes &sizes) override {
    sizes_ = sizes;
    room_at_ = round_up(sizes.parts * sizeof(HeadPart), kAlignment);
    const std::size_t keys = gemm_.packed_bytes(kKeysAtOnce, sizes.features * sizeof(float)),
                      values = sizes.parts > 1 ? (kSumBlock + sizes.block) * sizes.values * sizeof(float) : 0;
    return room_at_ + round_up(std::max(keys, values), kAlignment);
  }

  /// Notes where they lie.
  void pack(std::byte *scratch, std::span<const HeadPart> parts) const override {
    std::ranges::copy(parts, reinterpret_cast<HeadPart *>(scratch));
  }

  void multiply_keys(std::byte *scratch, const HeadMatrix &queries, ScoreBlock block, float *scores) const override {
    std::size_t before = 0;
    for (const HeadPart &part : parts_in(scratch)) {
      const std::size_t count = std::min(part.count, block.keys - before);
      if (part.keys.row == 1)
        rows_.key_products({queries.at, queries.row, block.queries, part.keys.at, part.keys.column, count,
                            sizes_.features, scores + before, static_cast<std::ptrdiff_t>(sizes_.row)});
      else
        for (std::size_t key = 0; key < count; key += kKeysAtOnce)
          multiply_columns(scratch + room_at_, part.keys, key, std::min(count, key + kKeysAtOnce), queries,
                           block.queries, scores + before + key);
      before += count;
    }
  }

  void mix_values(std::byte *scratch, float *scores, ScoreBlock block, const ScoreChange &change, float *y,
                  std::ptrdiff_t y_row) const override {
    const auto row = static_cast<std::ptrdiff_t>(sizes_.row);
    make_shares(rows_, scores, block, row, change);
    const std::span<const HeadPart> parts = parts_in(scratch);
    const auto mix = [&](std::size_t key, std::size_t count, const HeadMatrix &values, float *to,
                         std::ptrdiff_t to_row) {
      rows_.mixtures({scores + key, row, block.queries, values.at, values.row, sizes_.values, count, to, to_row});
    };
    // Where parts meet inside of a block of sums, its rows are brought together.
    const std::size_t whole = block.keys <= parts[0].count ? block.keys : parts[0].count / kSumBlock * kSumBlock;
    mix(0, whole, parts[0].values, y, y_row);
    const auto width = static_cast<std::ptrdiff_t>(sizes_.values);
    auto *rows = reinterpret_cast<float *>(scratch + room_at_), *sums = rows + kSumBlock * sizes_.values;
    for (std::size_t key = whole, end; key < block.keys; key = end) {
      end = std::min(block.keys, key + kSumBlock);
      for (std::size_t k = key; k < end; ++k)
        std::copy_n(value(parts, k), sizes_.values, rows + (k - key) * sizes_.values);
      mix(key, end - key, {rows, width, 1}, key == 0 ? y : sums, key == 0 ? y_row : width);
      for (std::size_t q = 0; key > 0 && q < block.queries; ++q)
        for (std::size_t i = 0; i < sizes_.values; ++i)
          y[static_cast<std::ptrdiff_t>(q) * y_row + static_cast<std::ptrdiff_t>(i)] += sums[q * sizes_.values + i];
    }
  }

 private:
  std::span<const HeadPart> parts_in(const std::byte *scratch) const {
    return {reinterpret_cast<const HeadPart *>(scratch), sizes_.parts};
  }

  static const float *value(std::span<const HeadPart> parts, std::size_t key) {
    for (; key >= parts[0].count; parts = parts.subspan(1)) key -= parts[0].count;
    return parts[0].values.at + static_cast<std::ptrdiff_t>(key) * parts[0].values.row;
  }

  /// Keys [first, end) of those that lie in columns.
  void multiply_columns(std::byte *packed, const HeadMatrix &keys, std::size_t first, std::size_t end,
                        const HeadMatrix &queries, std::size_t count, float *scores) const {
    const float *at = keys.at + static_cast<std::ptrdiff_t>(first) * keys.column;
    gemm_.pack(packed, {at, keys.column, keys.row, nullptr, end - first, sizes_.features});
    kernels::GemmArgs args{};
    args.m = count;
    args.n = end - first;
    args.k = sizes_.features * sizeof(float);
    args.a = reinterpret_cast<const std::uint8_t *>(queries.at);
    args.lda = queries.row * static_cast<std::ptrdiff_t>(sizeof(float));
    args.packed = packed;
    args.y = scores;
    args.ldy = static_cast<std::ptrdiff_t>(sizes_.row);
    args.lo = -std::numeric_limits<float>::infinity();
    args.hi = std::numeric_limits<float>::infinity();
    gemm_.run(args);
  }

  const kernels::GemmRealKernel &gemm_;
  const kernels::RowsKernel &rows_;
  HeadSizes sizes_{};
  std::size_t room_at_ = 0;  ///< of the scratch: behind where keys and values lie
};

}  // namespace

std::unique_ptr<AttentionProducts> make_few_real_products(Isa isa) { return std::make_unique<FewRealProducts>(isa); }

}  // namespace qtn::runtime
