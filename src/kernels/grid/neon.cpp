// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon.hpp"

#include "kernels/grid/rows.hpp"

namespace qtn::kernels::grid_neon {
namespace {

/// Stores around the caches are ordinary ones.
struct Neon {
  using Floats = float32x4_t;
  using Ints = int32x4_t;
  static constexpr std::size_t kLanes = 4;

  static Floats all(float v) { return vdupq_n_f32(v); }
  static Ints all(std::int32_t v) { return vdupq_n_s32(v); }
  static Floats multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
  static Floats divide(Floats a, Floats b) { return vdivq_f32(a, b); }
  /// The second operand if one of the two is NaN.
  static Floats min(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static Floats max(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Ints min(Ints a, Ints b) { return vminq_s32(a, b); }
  static Ints max(Ints a, Ints b) { return vmaxq_s32(a, b); }
  static Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
  static Ints subtract(Ints a, Ints b) { return vsubq_s32(a, b); }
  static Ints round(Floats v) { return vcvtnq_s32_f32(v); }
  static Floats to_floats(Ints v) { return vcvtq_f32_s32(v); }
  static Floats or_zero(Floats v) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vceqq_f32(v, v)));
  }
  static bool any_nan(Floats a, Floats b) { return vminvq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b))) == 0; }
  /// Whether any quotient is not known well enough from these products: quotient.hpp.
  static bool any_unsure(Floats a, Floats b) {
    const auto sure = [](Floats v) { return vcaleq_f32(vsubq_f32(v, to_floats(round(v))), all(kSureWithin)); };
    return vminvq_u32(vandq_u32(sure(a), sure(b))) == 0;
  }
  static void fence() {}

  /// clamp(rint(v) + zero): in double, where nothing of it overflows.
  static Ints round_wide(Floats v, Ints zero, std::int32_t lo, std::int32_t hi) {
    const float32x4_t rounded = vrndnq_f32(v);
    const auto half = [&](float64x2_t r, int32x2_t z) {
      const float64x2_t q = vaddq_f64(r, to_doubles(z));
      return vmovn_s64(vcvtq_s64_f64(vminq_f64(vmaxq_f64(q, vdupq_n_f64(lo)), vdupq_n_f64(hi))));
    };
    return vcombine_s32(half(vcvt_f64_f32(vget_low_f32(rounded)), vget_low_s32(zero)),
                        half(vcvt_high_f64_f32(rounded), vget_high_s32(zero)));
  }
  /// The same without a zero point; conversion saturates.
  static Ints round_centered(Floats v, std::int32_t lo, std::int32_t hi) {
    return min(max(round(v), all(lo)), all(hi));
  }
  /// float(v - zero), rounded once.
  static Floats steps_wide(Ints v, Ints zero) {
    const auto half = [&](int32x2_t q, int32x2_t z) { return vcvt_f32_f64(vsubq_f64(to_doubles(q), to_doubles(z))); };
    return vcombine_f32(half(vget_low_s32(v), vget_low_s32(zero)), half(vget_high_s32(v), vget_high_s32(zero)));
  }

  static Floats load(const float *p) { return vld1q_f32(p); }
  static Ints load(const std::int32_t *p) { return vld1q_s32(p); }
  static Ints load(const std::uint8_t *p) { return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load4(p))))); }
  static Ints load(const std::int8_t *p) { return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load4(p))))); }
  static Ints load(const std::uint16_t *p) { return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p))); }
  static Ints load(const std::int16_t *p) { return vmovl_s16(vld1_s16(p)); }
  template <bool kSigned>
  static Ints load(const Nibbles<kSigned> *p) {
    std::uint16_t pairs;
    __builtin_memcpy(&pairs, p, sizeof pairs);
    const Ints q = vandq_s32(vshlq_s32(all(std::int32_t{pairs}), Ints{0, -4, -8, -12}), all(15));
    return kSigned ? vsubq_s32(veorq_s32(q, all(8)), all(8)) : q;
  }

  static void store(float *p, Floats v, bool) { vst1q_f32(p, v); }
  static void store(std::int32_t *p, Ints v, bool) { vst1q_s32(p, v); }
  static void store(std::uint8_t *p, Ints v, bool) { store_bytes(p, v); }
  static void store(std::int8_t *p, Ints v, bool) { store_bytes(p, v); }
  static void store(std::uint16_t *p, Ints v, bool) { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(v))); }
  static void store(std::int16_t *p, Ints v, bool) { vst1_s16(p, vmovn_s32(v)); }
  template <bool kSigned>
  static void store(Nibbles<kSigned> *p, Ints v, bool) {
    const auto pairs = static_cast<std::uint16_t>(vaddvq_s32(vshlq_s32(vandq_s32(v, all(15)), Ints{0, 4, 8, 12})));
    __builtin_memcpy(p, &pairs, sizeof pairs);
  }

  // Packing: words and bytes in a vector of dwords.
  static Ints all(std::int16_t v) { return vreinterpretq_s32_s16(vdupq_n_s16(v)); }
  static Ints all(std::int8_t v) { return vreinterpretq_s32_s8(vdupq_n_s8(v)); }
  static Ints all(std::uint8_t v) { return vreinterpretq_s32_u8(vdupq_n_u8(v)); }
  static Ints words(std::int16_t, Ints a, Ints b) { return vreinterpretq_s32_s16(vqmovn_high_s32(vqmovn_s32(a), b)); }
  static Ints words(std::uint16_t, Ints a, Ints b) {
    return vreinterpretq_s32_u16(vqmovun_high_s32(vqmovun_s32(a), b));
  }
  static Ints add_words(Ints a, Ints b) { return vreinterpretq_s32_s16(vqaddq_s16(s16(a), s16(b))); }
  static Ints bytes(std::int8_t, Ints ab, Ints cd) {
    return vreinterpretq_s32_s8(vqmovn_high_s16(vqmovn_s16(s16(ab)), s16(cd)));
  }
  static Ints bytes(std::uint8_t, Ints ab, Ints cd) {
    return vreinterpretq_s32_u8(vqmovun_high_s16(vqmovun_s16(s16(ab)), s16(cd)));
  }
  static Ints min(Ints a, Ints b, std::int8_t) { return vreinterpretq_s32_s8(vminq_s8(s8(a), s8(b))); }
  static Ints min(Ints a, Ints b, std::uint8_t) { return vreinterpretq_s32_u8(vminq_u8(u8(a), u8(b))); }
  static Ints max(Ints a, Ints b, std::int8_t) { return vreinterpretq_s32_s8(vmaxq_s8(s8(a), s8(b))); }
  static Ints max(Ints a, Ints b, std::uint8_t) { return vreinterpretq_s32_u8(vmaxq_u8(u8(a), u8(b))); }
  static void put(void *p, Ints v, bool) { __builtin_memcpy(p, &v, sizeof v); }
  static void put_nibbles(void *p, Ints bytes, bool) {
    const uint8x16_t firsts = vuzp1q_u8(u8(bytes), u8(bytes)), seconds = vuzp2q_u8(u8(bytes), u8(bytes));
    const uint8x8_t packed = vsli_n_u8(vget_low_u8(firsts), vget_low_u8(seconds), 4);
    __builtin_memcpy(p, &packed, sizeof packed);
  }

 private:
  static float64x2_t to_doubles(int32x2_t v) { return vcvtq_f64_s64(vmovl_s32(v)); }
  static int16x8_t s16(Ints v) { return vreinterpretq_s16_s32(v); }
  static int8x16_t s8(Ints v) { return vreinterpretq_s8_s32(v); }
  static uint8x16_t u8(Ints v) { return vreinterpretq_u8_s32(v); }
  static uint8x8_t load4(const void *p) {
    std::uint32_t bytes;
    __builtin_memcpy(&bytes, p, sizeof bytes);
    return vcreate_u8(bytes);
  }
  static void store_bytes(void *p, Ints v) {
    const int16x4_t words = vmovn_s32(v);
    const uint32x2_t bytes = vreinterpret_u32_s8(vmovn_s16(vcombine_s16(words, words)));
    const std::uint32_t low = vget_lane_u32(bytes, 0);
    __builtin_memcpy(p, &low, sizeof low);
  }
};

}  // namespace

void quantize(const GridQuantizeArgs &args) { quantize_grid<Neon>(args); }
void dequantize(const GridDequantizeArgs &args) { dequantize_grid<Neon>(args); }
FloatRange range(const float *x, std::size_t count) { return range_of<Neon>(x, count); }

}  // namespace qtn::kernels::grid_neon
