// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_blocks/quad.hpp"

namespace qtn::kernels::gemm_blocks_dotprod {
namespace {

struct Dots : Quad {
  static int32x4_t dot_bytes(int32x4_t acc, int32x4_t w, int32x4_t x) {
    return vdotq_s32(acc, signed_bytes(w), vreinterpretq_s8_s32(x));
  }
  static int32x4_t dot_halves(int32x4_t acc, int32x4_t w, int32x4_t x, int32x4_t next) {
    return vdotq_s32(vdotq_s32(acc, low_halves(w), vreinterpretq_s8_s32(x)), high_halves(w),
                     vreinterpretq_s8_s32(next));
  }
};

template <int bits, bool zeros>
void run_form(const BlocksArgs &args) {
  run_two_rows<Dots, bits, zeros>(args);
}

}  // namespace

#include "kernels/gemm_blocks/entries.inc"

}  // namespace qtn::kernels::gemm_blocks_dotprod
