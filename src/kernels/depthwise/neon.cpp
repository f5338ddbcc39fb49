// SPDX-License-Identifier: Apache-2.0
// Two taps of a channel are the two int16 of one dword, whose products smull gives exactly.
#include "kernels/depthwise/quad.hpp"

namespace qtn::kernels::depthwise_neon_2tap {
namespace {

struct Neon : Quad {
  using Weight = std::int16_t;
  static constexpr int kTaps = 2, kShift = 0;

  using Quad::Quad;

  template <int v>
  static int32x4_t dwords(const Words *w) {
    const uint8x16_t half = v < 2 ? w->lo : w->hi;
    return vreinterpretq_s32_u16(v % 2 == 0 ? vmovl_u8(vget_low_u8(half)) : vmovl_high_u8(half));
  }
  static int32x4_t dot(int32x4_t acc, int32x4_t taps, int32x4_t weights) {
    const int16x8_t t = vreinterpretq_s16_s32(taps), w = vreinterpretq_s16_s32(weights);
    return vaddq_s32(acc, vpaddq_s32(vmull_s16(vget_low_s16(t), vget_low_s16(w)), vmull_high_s16(t, w)));
  }
};

}  // namespace

std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
  return Band<Neon, 1>::Layout::packed_bytes(window, channels);
}
void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
  Band<Neon, 1>::Layout::pack(packed, window, w);
}
std::size_t scratch_bytes(const DepthwiseWindow &window) { return Band<Neon, 1>::scratch_bytes(window); }
void run_u8(const DepthwiseArgs &args) { run_strips<Neon, std::uint8_t>(args); }
void run_f32(const DepthwiseArgs &args) { run_strips<Neon, float>(args); }

}  // namespace qtn::kernels::depthwise_neon_2tap
