// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/size.hpp"
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "kernels/rows/rows.hpp"
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
  std::size_t rows_at_once() const override { return gemm_.mr; }
  std::size_t bytes(const HeadSizes &s) const override { return values_at(s) + packed(s.values, s.keys); }

  void pack(std::byte *scratch, const HeadSizes &s, const HeadMatrix &keys, const HeadMatrix &values) const override {
    gemm_.pack(scratch, {keys.at, keys.column, keys.row, nullptr, s.keys, s.features});
    gemm_.pack(scratch + values_at(s), {values.at, values.column, values.row, nullptr, s.values, s.keys});
  }

  void multiply_keys(std::byte *scratch, const HeadSizes &s, const HeadMatrix &queries, std::size_t count,
                     float *scores) const override {
    multiply({queries.at, queries.row, count, s.features}, scratch, s.keys, {-kInfinity, kInfinity}, scores,
             static_cast<std::ptrdiff_t>(s.row));
  }

  void mix_values(std::byte *scratch, const HeadSizes &s, float *scores, std::size_t count, const ScoreChange &change,
                  float *y, std::ptrdiff_t y_row) const override {
    const auto row = static_cast<std::ptrdiff_t>(s.row);
    rows_.score({scores, count, s.keys, row, change.factor, change.addend, change.addend_row});
    multiply({scores, row, count, s.keys}, scratch + values_at(s), s.values, clamp_, y, y_row);
  }

 private:
  struct Rows {
    const float *at;
    std::ptrdiff_t step;
    std::size_t count, depth;
  };

  std::size_t packed(std::size_t n, std::size_t k) const {
    return round_up(gemm_.packed_bytes(n, k * sizeof(float)), kAlignment);
  }
  std::size_t values_at(const HeadSizes &s) const { return packed(s.keys, s.features); }

  void multiply(const Rows &a, const std::byte *packed, std::size_t columns, const ops::Clamp &clamp, float *y,
                std::ptrdiff_t y_row) const {
    kernels::GemmArgs args{};
    args.m = a.count;
    args.n = columns;
    args.k = a.depth * sizeof(float);
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
};

}  // namespace

std::unique_ptr<const AttentionProducts> make_real_products(const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<RealProducts>(clamp, isa);
}

}  // namespace qtn::runtime
