// SPDX-License-Identifier: Apache-2.0
// Rows of floats on grids of 15 bits, in halves that products of bytes take.
#pragma once

#include "kernels/rows/bytes.hpp"

namespace qtn::kernels {
namespace {

template <int bytes>
struct RowCodes {
  using V = Functions<bytes>;
  using R = RowBytes<bytes>;
  using Floats = typename V::Floats;
  using Ints = typename V::Ints;
  static constexpr float kMost = 16319;  // 127 * 128 + 63
  static constexpr int kBits = 7, kLow = 1 << kBits, kZero = 128;

  static void run(const RowCodesArgs &args) {
    constexpr float kLeast = 0x1p-100f;  // below it the inverse of a scale may be infinite
    const float *x = args.x;
    std::uint8_t *q = args.q;
    for (std::size_t r = 0; r < args.rows; ++r, x += args.columns, q += 2 * args.columns) {
      Ints peak{};
      R::each(
          x, nullptr, args.columns, [&](Floats v, std::size_t, std::size_t) __attribute__((always_inline)) {
            peak = R::kLarger(peak, R::magnitude_bits(v));
          });
      const float most = __builtin_bit_cast(float, folded<std::int32_t>(peak, R::kLarger));
      args.scale[r] = std::isfinite(most) ? most / kMost : std::numeric_limits<float>::quiet_NaN();
      if (std::isfinite(most) && most >= kLeast)
        encode(x, args.columns, kMost / most, q);
      else
        __builtin_memset(q, kZero, 2 * args.columns);
    }
  }

  static void join(const JoinCodesArgs &args) {
    std::size_t i = 0;
    const auto joined = [&](auto high, auto low, auto bias) __attribute__((always_inline)) {
      return (high * static_cast<float>(kLow) + low) * args.scale + bias;
    };
    for (; i + V::kCount <= args.count; i += V::kCount)
      V::store(args.y + i, joined(V::load(args.high + i), V::load(args.low + i), V::load(args.bias + i)));
    for (; i < args.count; ++i) args.y[i] = joined(args.high[i], args.low[i], args.bias[i]);
  }

 private:
  static void encode(const float *x, std::size_t columns, float inverse, std::uint8_t *high) {
    std::uint8_t *low = high + columns;
    R::each(
        x, nullptr, columns, [&](Floats v, std::size_t at, std::size_t count) __attribute__((always_inline)) {
          const Ints code = R::rounded(v * inverse), upper = (code + kLow / 2) >> kBits;
          R::store(high + at, upper + kZero, count);
          R::store(low + at, code - (upper << kBits) + kZero, count);
        });
  }
};

}  // namespace
}  // namespace qtn::kernels
