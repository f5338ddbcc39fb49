// SPDX-License-Identifier: Apache-2.0
// What kernels for AArch64 share. A kernel adds to Quad its dot_bytes() and dot_halves().
#pragma once

#include <arm_neon.h>

#include "kernels/gemm_blocks/tiles.hpp"

namespace qtn::kernels {
namespace {

struct Quad {
  using Integers = int32x4_t;
  using Reals = float32x4_t;
  static constexpr int kVectors = 4;           // of a panel
  static constexpr int kUp = 128;              // what dot_bytes() takes off elements by itself
  static constexpr std::size_t kAhead = 1024;  // what is fetched before it is read

  static int32x4_t words(const char *p) { return vld1q_s32(reinterpret_cast<const std::int32_t *>(p)); }
  static int8x16_t signed_bytes(int32x4_t w) {
    return veorq_s8(vreinterpretq_s8_s32(w), vdupq_n_s8(static_cast<std::int8_t>(-128)));
  }
  static int8x16_t low_halves(int32x4_t w) { return vandq_s8(vreinterpretq_s8_s32(w), vdupq_n_s8(15)); }
  static int8x16_t high_halves(int32x4_t w) { return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s32(w), 4)); }
  static int32x4_t all(std::int32_t v) { return vdupq_n_s32(v); }
  static int32x4_t bytes(const char *p) {
    std::uint32_t four_bytes;
    __builtin_memcpy(&four_bytes, p, sizeof four_bytes);
    const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four_bytes)));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
  }
  static int32x4_t product(int32x4_t a, int32x4_t b) { return vmulq_s32(a, b); }
  static int32x4_t sum(int32x4_t a, int32x4_t b) { return vaddq_s32(a, b); }

  static float32x4_t reals(const char *p) { return vld1q_f32(reinterpret_cast<const float *>(p)); }
  static float32x4_t all(float v) { return vdupq_n_f32(v); }
  static float32x4_t times(float32x4_t a, float32x4_t b) { return vmulq_f32(a, b); }
  static float32x4_t add(float32x4_t y, int32x4_t acc, float32x4_t scale) {
    return vfmaq_f32(y, vcvtq_f32_s32(acc), scale);
  }

  static void store(float *y, float32x4_t v, float32x4_t lo, float32x4_t hi, std::size_t columns, int before) {
    v = vminq_f32(hi, vmaxq_f32(lo, v));
    const std::size_t first = static_cast<std::size_t>(before);
    if (columns >= first + 4) return vst1q_f32(y, v);
    for (std::size_t c = first; c < columns; ++c) y[c - first] = v[c - first];
  }
};

void quantize_block(const float *x, std::size_t depth, std::int8_t *q, float &scale_of, std::int32_t &sum_of) {
  const auto each_eight = [&](const auto &body) {
    std::size_t k = 0;
    for (; k + 8 <= depth; k += 8) body(k, vld1q_f32(x + k), vld1q_f32(x + k + 4));
    if (k == depth) return;
    float rest[8] = {};
    __builtin_memcpy(rest, x + k, (depth - k) * sizeof(float));
    body(k, vld1q_f32(rest), vld1q_f32(rest + 4));
  };
  uint32x4_t most = vdupq_n_u32(0);
  const auto magnitude = [](float32x4_t v) { return vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x7fffffff)); };
  each_eight([&](std::size_t, float32x4_t a, float32x4_t b) {
    most = vmaxq_u32(most, vmaxq_u32(magnitude(a), magnitude(b)));
  });
  const BlockScale scale(vmaxvq_u32(most));
  const float32x4_t inverse = vdupq_n_f32(scale.inverse);
  int32x4_t sum = vdupq_n_s32(0);
  const auto integers = [&](float32x4_t v) {
    return scale.normal ? vcvtnq_s32_f32(vmulq_f32(v, inverse)) : vdupq_n_s32(0);
  };
  each_eight([&](std::size_t k, float32x4_t a, float32x4_t b) {
    const int32x4_t low = integers(a), high = integers(b);
    sum = vaddq_s32(sum, vaddq_s32(low, high));
    vst1_s8(q + k, vmovn_s16(vcombine_s16(vmovn_s32(low), vmovn_s32(high))));
  });
  scale_of = scale.scale;
  sum_of = vaddvq_s32(sum);
}

}  // namespace
}  // namespace qtn::kernels
