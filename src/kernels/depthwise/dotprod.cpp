// SPDX-License-Identifier: Apache-2.0
// sdot multiplies int8 by int8: the image is read 128 lower.
#include "kernels/depthwise/quad.hpp"

namespace qtn::kernels::depthwise_dotprod_4tap {
namespace {

struct Dotprod : FourTaps {
  static constexpr int kShift = 128;

  using FourTaps::FourTaps;

  static int32x4_t dot(int32x4_t acc, int32x4_t taps, int32x4_t weights) {
    const uint8x16_t lower = veorq_u8(vreinterpretq_u8_s32(taps), vdupq_n_u8(128));
    return vdotq_s32(acc, vreinterpretq_s8_u8(lower), vreinterpretq_s8_s32(weights));
  }
};

}  // namespace

std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
  return Band<Dotprod, 1>::Layout::packed_bytes(window, channels);
}
void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
  Band<Dotprod, 1>::Layout::pack(packed, window, w);
}
std::size_t scratch_bytes(const DepthwiseWindow &window) { return Band<Dotprod, 1>::scratch_bytes(window); }
void run_u8(const DepthwiseArgs &args) { run_strips<Dotprod, std::uint8_t>(args); }
void run_f32(const DepthwiseArgs &args) { run_strips<Dotprod, float>(args); }

}  // namespace qtn::kernels::depthwise_dotprod_4tap
