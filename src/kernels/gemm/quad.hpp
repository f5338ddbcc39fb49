// SPDX-License-Identifier: Apache-2.0
// What tiles of 128-bit registers share: 16 columns, and their ends.
#pragma once

#include "kernels/gemm/in_place.hpp"
#include "kernels/neon.hpp"

namespace qtn::kernels {
namespace {

/// The multipliers of columns 4j to 4j + 3.
inline float32x4_t multipliers(const Tile &t, int j) {
  return vld1q_f32(reinterpret_cast<const float *>(t.multiplier) + 4 * j);
}

class QuadStoreU8 {
 public:
  static constexpr std::size_t kSize = 1;

  explicit QuadStoreU8(const GemmArgs &args) : saturate_(args.range) {}

  template <int mr, int nv>
  void operator()(const int32x4_t (&acc)[mr][nv], const Tile &t) const {
    constexpr int kColumns = 4 * nv;
    std::uint8_t part[mr * kColumns];
    const bool whole = t.columns == kColumns;
    std::uint8_t *y = whole ? reinterpret_cast<std::uint8_t *>(t.y) : part;
    const std::ptrdiff_t ldy = whole ? t.ldy : kColumns;
    float32x4_t scale[nv];
    unroll<nv>([&](auto j) { scale[j] = multipliers(t, j); });
    const Saturate saturate = saturate_;  // in registers: a store of bytes may change a member
    unroll<mr>([&](auto r) {
      const auto words = [&](int j) {
        return saturate.words(saturate.round(scaled(acc[r][j], scale[j])),
                              saturate.round(scaled(acc[r][j + 1], scale[j + 1])));
      };
      const uint8x16_t bytes = saturate.bytes(words(0), words(nv - 2));
      if constexpr (nv == 4)
        vst1q_u8(y, bytes);
      else
        vst1_u8(y, vget_low_u8(bytes));
      y += ldy;
    });
    if (!whole)
      for (int r = 0; r < mr; ++r) __builtin_memcpy(t.y + r * t.ldy, part + r * kColumns, t.columns);
  }

 private:
  Saturate saturate_;
};

class QuadStoreF32 {
 public:
  static constexpr std::size_t kSize = 4;

  explicit QuadStoreF32(const GemmArgs &args)
      : lo_(vdupq_n_f32(args.lo)), hi_(vdupq_n_f32(args.hi)), addend_(args.addend) {}

  template <int mr, int nv>
  void operator()(const int32x4_t (&acc)[mr][nv], const Tile &t) const {
    constexpr int kColumns = 4 * nv;
    float part[mr * kColumns];
    const bool whole = t.columns == kColumns;
    float *y = whole ? reinterpret_cast<float *>(t.y) : part;
    const std::ptrdiff_t ldy = whole ? t.ldy / static_cast<std::ptrdiff_t>(kSize) : kColumns;
    float32x4_t scale[nv], addend[nv];
    unroll<nv>([&](auto j) {
      scale[j] = multipliers(t, j);
      addend[j] = addend_ ? vld1q_f32(addend_ + t.column + 4 * j) : vdupq_n_f32(kNoAddend);
    });
    const float32x4_t lo = lo_, hi = hi_;
    unroll<mr>([&](auto r) {
      unroll<nv>([&](auto j) {
        // Comparisons keep a NaN and the sign of zero, which minimum and maximum do not.
        float32x4_t v = vaddq_f32(scaled(acc[r][j], scale[j]), addend[j]);
        v = vbslq_f32(vcltq_f32(v, lo), lo, v);
        v = vbslq_f32(vcgtq_f32(v, hi), hi, v);
        vst1q_f32(y + 4 * j, v);
      });
      y += ldy;
    });
    if (!whole)
      for (int r = 0; r < mr; ++r) __builtin_memcpy(t.y + r * t.ldy, part + r * kColumns, t.columns * kSize);
  }

 private:
  float32x4_t lo_, hi_;
  const float *addend_;
};

class QuadStoreRows {
 public:
  static constexpr std::size_t kSize = 4;
  static constexpr bool kPlaced = true;

  explicit QuadStoreRows(const GemmArgs &args)
      : rows_(*args.rows), lo_(vdupq_n_f32(args.lo)), hi_(vdupq_n_f32(args.hi)) {}

  template <int mr, int nv>
  void operator()(const int32x4_t (&acc)[mr][nv], const Tile &t) const {
    constexpr int kColumns = 4 * nv;
    float part[mr * kColumns];
    const bool whole = t.columns == kColumns;
    float *y = whole ? reinterpret_cast<float *>(t.y) : part;
    const std::ptrdiff_t ldy = whole ? t.ldy / static_cast<std::ptrdiff_t>(kSize) : kColumns;
    const float32x4_t lo = lo_, hi = hi_;
    unroll<mr>([&](auto r) {
      const float scale = rows_.scale[t.row + r];
      const std::int32_t zero = rows_.zero[t.row + r];
      unroll<nv>([&](auto j) {
        const std::size_t column = t.column + 4 * j;
        const int32x4_t sum = vmlsq_n_s32(acc[r][j], vld1q_s32(rows_.sums + column), zero);
        // Comparisons keep a NaN and the sign of zero, which minimum and maximum do not.
        float32x4_t v = scaled(sum, vmulq_n_f32(multipliers(t, j), scale));
        v = vaddq_f32(v, vld1q_f32(rows_.bias + column));
        v = vbslq_f32(vcltq_f32(v, lo), lo, v);
        v = vbslq_f32(vcgtq_f32(v, hi), hi, v);
        vst1q_f32(y + 4 * j, v);
      });
      y += ldy;
    });
    if (!whole)
      for (int r = 0; r < mr; ++r) __builtin_memcpy(t.y + r * t.ldy, part + r * kColumns, t.columns * kSize);
  }

 private:
  const GemmRows &rows_;
  float32x4_t lo_, hi_;
};

}  // namespace
}  // namespace qtn::kernels
