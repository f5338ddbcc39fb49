// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon.hpp"

#include "kernels/pool/blocks.hpp"

namespace qtn::kernels::pool_neon {
namespace {

struct Neon {
  using Bytes = uint8x16_t;
  struct Words {
    uint16x8_t lo, hi;
  };

  static int32x4_t all(std::int32_t v) { return vdupq_n_s32(v); }
  static float32x4_t all(float v) { return vdupq_n_f32(v); }
  static Bytes max(Bytes a, Bytes b) { return vmaxq_u8(a, b); }
  static Words none() { return {vdupq_n_u16(0), vdupq_n_u16(0)}; }
  static void add(Words &to, Bytes x) {
    to.lo = vaddw_u8(to.lo, vget_low_u8(x));
    to.hi = vaddw_high_u8(to.hi, x);
  }
  static void add(int32x4_t (&sum)[4], const Words &words) {
    const auto add = [](int32x4_t a, uint32x4_t b) { return vaddq_s32(a, vreinterpretq_s32_u32(b)); };
    sum[0] = add(sum[0], vmovl_u16(vget_low_u16(words.lo)));
    sum[1] = add(sum[1], vmovl_high_u16(words.lo));
    sum[2] = add(sum[2], vmovl_u16(vget_low_u16(words.hi)));
    sum[3] = add(sum[3], vmovl_high_u16(words.hi));
  }
};

}  // namespace

void max(const PoolArgs &args) { max_blocks<Neon>(args); }
void average(const PoolArgs &args) { average_blocks<Neon>(args); }

}  // namespace qtn::kernels::pool_neon
