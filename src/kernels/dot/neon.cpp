// SPDX-License-Identifier: Apache-2.0
// Exact products on every AArch64 CPU: both sides widened to 16 bits for smlal.
#include "kernels/dot/quad.hpp"

namespace qtn::kernels::dot_neon {
namespace {

struct Neon : Quad, MixedSigns<Neon> {
  static Bytes ones() { return vdupq_n_u8(1); }
  static Sums dot(Sums acc, Bytes u8, Bytes s8) {
    const int8x16_t s = vreinterpretq_s8_u8(s8);
    acc = add(acc, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(u8))), vmovl_s8(vget_low_s8(s)));
    return add(acc, vreinterpretq_s16_u16(vmovl_high_u8(u8)), vmovl_high_s8(s));
  }

 private:
  static Sums add(Sums acc, int16x8_t a, int16x8_t b) {
    return vmlal_high_s16(vmlal_s16(acc, vget_low_s16(a), vget_low_s16(b)), a, b);
  }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Neon>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Neon>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_neon
