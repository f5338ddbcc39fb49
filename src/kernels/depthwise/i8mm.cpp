// SPDX-License-Identifier: Apache-2.0
// usdot, which comes with the matrix products.
#include "kernels/depthwise/quad.hpp"

namespace qtn::kernels::depthwise_i8mm_4tap {
namespace {

struct I8mm : FourTaps {
  static constexpr int kShift = 0;

  using FourTaps::FourTaps;

  static int32x4_t dot(int32x4_t acc, int32x4_t taps, int32x4_t weights) {
    return vusdotq_s32(acc, vreinterpretq_u8_s32(taps), vreinterpretq_s8_s32(weights));
  }
};

}  // namespace

std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
  return Band<I8mm, 1>::Layout::packed_bytes(window, channels);
}
void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
  Band<I8mm, 1>::Layout::pack(packed, window, w);
}
std::size_t scratch_bytes(const DepthwiseWindow &window) { return Band<I8mm, 1>::scratch_bytes(window); }
void run_u8(const DepthwiseArgs &args) { run_strips<I8mm, std::uint8_t>(args); }
void run_f32(const DepthwiseArgs &args) { run_strips<I8mm, float>(args); }

}  // namespace qtn::kernels::depthwise_i8mm_4tap
