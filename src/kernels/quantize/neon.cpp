// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon.hpp"

#include "kernels/quantize/blocks.hpp"

namespace qtn::kernels::quantize_neon {
namespace {

struct Neon {
  static constexpr std::size_t kColumns = 16;

  class Quantizer {
   public:
    explicit Quantizer(const QuantizeArgs &args) : scale_(vdupq_n_f32(args.scale)), saturate_(args.range) {}

    /// 16 floats at a, or 8 at a and 8 at b.
    uint8x16_t operator()(const float *a, const float *b) const {
      return saturate_.bytes(saturate_.words(round(a), round(a + 4)), saturate_.words(round(b), round(b + 4)));
    }

   private:
    int32x4_t round(const float *p) const { return saturate_.round_any(vdivq_f32(vld1q_f32(p), scale_)); }

    float32x4_t scale_;
    Saturate saturate_;
  };

  static void row(const Quantizer &quantizer, const float *x, std::uint8_t *q) { store(q, quantizer(x, x + 8)); }

  static void planes(const Quantizer &quantizer, const float *x, std::ptrdiff_t x_column, int used, ByRow &by_row) {
    // Where there is no plane, the first stands in.
    const auto at = [&](int k) { return k < used ? x + k * x_column : x; };
    const uint8x16_t ab = quantizer(at(0), at(1)), cd = quantizer(at(2), at(3));
    vst4_u8(by_row[0], uint8x8x4_t{{vget_low_u8(ab), vget_high_u8(ab), vget_low_u8(cd), vget_high_u8(cd)}});
  }

  class Dequantizer {
   public:
    explicit Dequantizer(const DequantizeArgs &args)
        : scale_(vdupq_n_f32(args.scale)), zero_(vdupq_n_s16(static_cast<std::int16_t>(args.zero))) {}

    void operator()(uint8x8_t bytes, float *x) const {
      const int16x8_t steps = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(bytes)), zero_);
      vst1q_f32(x, scaled(vmovl_s16(vget_low_s16(steps)), scale_));
      vst1q_f32(x + 4, scaled(vmovl_high_s16(steps), scale_));
    }

   private:
    float32x4_t scale_;
    int16x8_t zero_;
  };

  static void row(const Dequantizer &dequantizer, const std::uint8_t *q, float *x) { dequantizer(vld1_u8(q), x); }

  static void planes(const Dequantizer &dequantizer, const ByRow &by_row, float *x, std::ptrdiff_t x_column, int used) {
    const uint8x8x4_t planes = vld4_u8(by_row[0]);
    for (int k = 0; k < used; ++k) dequantizer(planes.val[k], x + k * x_column);
  }
};

}  // namespace

void quantize(const QuantizeArgs &args) { quantize_blocks<Neon>(args); }
void dequantize(const DequantizeArgs &args) { dequantize_blocks<Neon>(args); }

}  // namespace qtn::kernels::quantize_neon
