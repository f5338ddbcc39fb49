// SPDX-License-Identifier: Apache-2.0
// Keys are brought to 8 bits by key, values by feature, queries and what Softmax makes of their scores by row.
#include <algorithm>
#include <array>
#include <limits>

#include "base/size.hpp"
#include "kernels/columns/columns.hpp"
#include "kernels/rows/rows.hpp"
#include "runtime/steps/any_weights.hpp"
#include "runtime/steps/attention_products.hpp"
#include "runtime/steps/scratch_places.hpp"

namespace qtn::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class IntegerProducts final : public AttentionProducts {
 public:
  IntegerProducts(bool centered, const ops::Clamp &clamp, Isa isa)
      : gemm_(any_weights_kernel(isa)),
        rows_(kernels::choose(kernels::rows_kernels(), isa)),
        centered_(centered),
        clamp_(clamp) {}

  const char *kernel() const override { return gemm_.name; }
  FloatMode float_mode() const override { return FloatMode::standard; }
  std::size_t rows_at_once() const override { return gemm_.mr; }
  std::size_t settle(const HeadSizes &sizes) override {
    sizes_ = sizes;
    at_ = Places(*this, sizes);
    return at_.end;
  }

  void pack(std::byte *scratch, std::span<const HeadPart> parts) const override {
    const HeadMatrix &keys = parts[0].keys, &values = parts[0].values;
    auto *bytes = reinterpret_cast<std::int8_t *>(scratch + at_.bytes);
    auto *scale = floats(scratch + at_.scale);
    auto *no_bias = reinterpret_cast<std::int32_t *>(scratch + at_.zeros);
    std::fill_n(no_bias, at_.most_columns, 0);

    const HeadMatrix by_key =
        side_by_side({keys.at, keys.column, keys.row}, sizes_.keys, sizes_.features, scratch + at_.floats);
    const float *less =
        centered_ ? means(by_key, sizes_.keys, sizes_.features, scratch + at_.sums_of_keys, scratch + at_.mean)
                  : nullptr;
    auto *sums = reinterpret_cast<std::int32_t *>(scratch + at_.key_sums);
    std::fill(sums + sizes_.keys, sums + round_up(sizes_.keys, gemm_.nr), 0);
    rows_.row_bytes({by_key.at, by_key.row, sizes_.keys, sizes_.features, less, reinterpret_cast<std::uint8_t *>(bytes),
                     scale, nullptr, sums});
    const auto features = static_cast<std::ptrdiff_t>(sizes_.features);
    gemm_.pack(scratch + at_.keys, {bytes, features, no_bias, scale, sizes_.keys, sizes_.features});

    const HeadMatrix by_place = side_by_side(values, sizes_.keys, sizes_.values, scratch + at_.floats);
    rows_.column_bytes({by_place.at, by_place.row, sizes_.keys, sizes_.values, bytes, scale});
    gemm_.pack(scratch + at_.values,
               {bytes, 1, no_bias, scale, sizes_.values, sizes_.keys, static_cast<std::ptrdiff_t>(sizes_.values)});
  }

  void multiply_keys(std::byte *scratch, const HeadMatrix &queries, ScoreBlock block, float *scores) const override {
    auto *zeros = reinterpret_cast<std::int32_t *>(scratch + at_.row_zeros);
    auto *q = reinterpret_cast<std::uint8_t *>(scratch + at_.bytes);
    auto *scale = floats(scratch + at_.scale);
    rows_.row_bytes({queries.at, queries.row, block.queries, sizes_.features, nullptr, q, scale, zeros, nullptr});
    const kernels::GemmRows rows{scale, zeros, reinterpret_cast<const std::int32_t *>(scratch + at_.key_sums),
                                 floats(scratch + at_.zeros), true};
    multiply({q, static_cast<std::ptrdiff_t>(sizes_.features), block.queries, sizes_.features}, rows,
             scratch + at_.keys, block.keys, {-kInfinity, kInfinity}, scores, static_cast<std::ptrdiff_t>(sizes_.row),
             scratch + at_.gemm);
  }

  void mix_values(std::byte *scratch, float *scores, ScoreBlock block, const ScoreChange &change, float *y,
                  std::ptrdiff_t y_row) const override {
    const auto row = static_cast<std::ptrdiff_t>(sizes_.row);
    auto *q = reinterpret_cast<std::uint8_t *>(scratch + at_.bytes);
    auto *scale = floats(scratch + at_.scale);
    rows_.score_bytes(
        {{scores, block.queries, block.keys, row, change.factor, change.addend, change.addend_row}, q, row, scale});
    for (std::size_t r = 0; block.keys < sizes_.keys && r < block.queries; ++r)
      std::fill(q + r * sizes_.row + block.keys, q + r * sizes_.row + sizes_.keys, std::uint8_t{0});
    const auto *zeros = reinterpret_cast<const std::int32_t *>(scratch + at_.zeros);
    const kernels::GemmRows rows{scale, zeros, zeros, floats(scratch + at_.zeros)};
    multiply({q, row, block.queries, sizes_.keys}, rows, scratch + at_.values, sizes_.values, clamp_, y, y_row,
             scratch + at_.gemm);
  }

 private:
  /// Where things are in the scratch, in bytes.
  struct Places : ScratchPlaces {
    std::size_t keys, key_sums, values, zeros, row_zeros, scale, mean, sums_of_keys, bytes, floats, gemm;
    std::size_t most_columns;

    Places() = default;
    Places(const IntegerProducts &p, const HeadSizes &s)
        : most_columns(std::max({round_up(s.keys, p.gemm_.nr), round_up(s.values, p.gemm_.nr), s.block})) {
      const std::size_t widest = std::max(s.features, s.values), numbers = most_columns * sizeof(float);
      keys = take(p.gemm_.packed_bytes(s.keys, s.features));
      key_sums = take(numbers);
      values = take(p.gemm_.packed_bytes(s.values, s.keys));
      zeros = take(numbers);
      row_zeros = take(numbers);
      scale = take(numbers);
      mean = take(p.centered_ ? s.features * sizeof(float) : 0);
      sums_of_keys = take(p.centered_ ? s.features * sizeof(double) : 0);
      bytes = take(std::max({s.keys * widest, s.block * s.row, s.block * s.features}) + kReadSlack);
      floats = take(s.keys * widest * sizeof(float));
      gemm = take(std::max(p.gemm_.scratch_bytes(s.block, s.features), p.gemm_.scratch_bytes(s.block, s.keys)));
    }
  };

  static float *floats(std::byte *at) { return reinterpret_cast<float *>(at); }

  /// The matrix with neighbours of a row side by side, copied only where they are not.
  static HeadMatrix side_by_side(const HeadMatrix &m, std::size_t rows, std::size_t columns, std::byte *scratch) {
    if (m.column == 1) return m;
    float *copy = floats(scratch);
    for (std::size_t c = 0; c < columns; ++c) {
      const float *from = m.at + static_cast<std::ptrdiff_t>(c) * m.column;
      for (std::size_t r = 0; r < rows; ++r) copy[r * columns + c] = from[static_cast<std::ptrdiff_t>(r) * m.row];
    }
    return {copy, static_cast<std::ptrdiff_t>(columns), 1};
  }

  const float *means(const HeadMatrix &m, std::size_t rows, std::size_t columns, std::byte *sums_at,
                     std::byte *to) const {
    auto *sums = reinterpret_cast<double *>(sums_at);
    std::fill_n(sums, columns, 0.0);
    kernels::columns_kernel().sum({m.at, rows, m.row, columns, sums, nullptr});
    float *mean = floats(to);
    for (std::size_t c = 0; c < columns; ++c) mean[c] = static_cast<float>(sums[c] / static_cast<double>(rows));
    return mean;
  }

  struct Rows {
    const std::uint8_t *at;
    std::ptrdiff_t step;
    std::size_t count, depth;
  };

  void multiply(const Rows &a, const kernels::GemmRows &rows, const std::byte *packed, std::size_t columns,
                const ops::Clamp &clamp, float *y, std::ptrdiff_t y_row, std::byte *scratch) const {
    kernels::GemmArgs args{};
    args.m = a.count;
    args.n = columns;
    args.k = a.depth;
    args.a = a.at;
    args.lda = a.step;
    args.packed = packed;
    args.y = y;
    args.ldy = y_row;
    args.lo = clamp.lo;
    args.hi = clamp.hi;
    args.scratch = scratch;
    args.rows = &rows;
    gemm_.run_rows(args);
  }

  const kernels::GemmKernel &gemm_;
  const kernels::RowsKernel &rows_;
  bool centered_;
  ops::Clamp clamp_;
  HeadSizes sizes_{};
  Places at_;
};

}  // namespace

std::unique_ptr<AttentionProducts> make_integer_products(bool centered, const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<IntegerProducts>(centered, clamp, isa);
}

}  // namespace qtn::runtime
