// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_blocks/quad.hpp"

namespace qtn::kernels::gemm_blocks_neon {
namespace {

struct Pairs : Quad {
  static int32x4_t dot_bytes(int32x4_t acc, int32x4_t w, int32x4_t x) {
    const int8x16_t a = signed_bytes(w), b = vreinterpretq_s8_s32(x);
    const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b)), high = vmull_high_s8(a, b);
    return add_pairs(acc, low, high);
  }
  static int32x4_t dot_halves(int32x4_t acc, int32x4_t w, int32x4_t x, int32x4_t next) {
    const int8x16_t a = low_halves(w), b = high_halves(w), c = vreinterpretq_s8_s32(x), d = vreinterpretq_s8_s32(next);
    const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(a), vget_low_s8(c)), vget_low_s8(b), vget_low_s8(d)),
                    high = vmlal_high_s8(vmull_high_s8(a, c), b, d);
    return add_pairs(acc, low, high);
  }

 private:
  static int32x4_t add_pairs(int32x4_t acc, int16x8_t low, int16x8_t high) {
    return vaddq_s32(acc, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
  }
};

template <int bits, bool zeros>
void run_form(const BlocksArgs &args) {
  run_two_rows<Pairs, bits, zeros>(args);
}

}  // namespace

#include "kernels/gemm_blocks/entries.inc"

}  // namespace qtn::kernels::gemm_blocks_neon
