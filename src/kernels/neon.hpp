// SPDX-License-Identifier: Apache-2.0
// What the kernels for AArch64 share; the counterpart of avx2.hpp, in an anonymous namespace for the same reason.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "base/requantize.hpp"

namespace qtn::kernels {
namespace {

/// Real values in units of the output scale to uint8. Conversion saturates and makes NaN 0, so both bounds are applied
/// to the bytes.
class Saturate {
 public:
  explicit Saturate(const QuantizedRange &r)
      : zero_(vdupq_n_s16(static_cast<std::int16_t>(r.zero))),
        lo_(vdupq_n_u8(static_cast<std::uint8_t>(r.lo))),
        hi_(vdupq_n_u8(static_cast<std::uint8_t>(r.hi))) {}

  int32x4_t round(float32x4_t v) const { return vcvtnq_s32_f32(v); }
  int32x4_t round_small(float32x4_t v) const { return round(v); }
  int32x4_t round_any(float32x4_t v) const { return round(v); }
  int16x8_t words(int32x4_t a, int32x4_t b) const { return vqaddq_s16(vqmovn_high_s32(vqmovn_s32(a), b), zero_); }
  uint8x16_t bytes(int16x8_t a, int16x8_t b) const {
    return vmaxq_u8(vminq_u8(vqmovun_high_s16(vqmovun_s16(a), b), hi_), lo_);
  }

 private:
  int16x8_t zero_;
  uint8x16_t lo_, hi_;
};

/// Four vectors of float(byte - zero), in order.
class Spread {
 public:
  explicit Spread(std::int32_t zero) : zero_(vdupq_n_s16(static_cast<std::int16_t>(zero))) {}

  void operator()(uint8x16_t bytes, float32x4_t (&to)[4]) const {
    const int16x8_t lo = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))), zero_);
    const int16x8_t hi = vsubq_s16(vreinterpretq_s16_u16(vmovl_high_u8(bytes)), zero_);
    to[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo)));
    to[1] = vcvtq_f32_s32(vmovl_high_s16(lo));
    to[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi)));
    to[3] = vcvtq_f32_s32(vmovl_high_s16(hi));
  }

 private:
  int16x8_t zero_;
};

inline uint8x16_t load(const std::uint8_t *p) { return vld1q_u8(p); }
inline void store(std::uint8_t *p, uint8x16_t v) { vst1q_u8(p, v); }
inline float32x4_t scaled(int32x4_t acc, float32x4_t multiplier) { return vmulq_f32(vcvtq_f32_s32(acc), multiplier); }

}  // namespace
}  // namespace qtn::kernels
