// SPDX-License-Identifier: Apache-2.0
// Two taps of a channel are the two int16 of one dword: unpacking interleaves and widens, and vpmaddwd is exact.
#include "kernels/depthwise/ymm.hpp"

namespace qtn::kernels::depthwise_avx2_2tap {
namespace {

struct Avx2 : Ymm {
  using Weight = std::int16_t;
  static constexpr int kTaps = 2;

  using Ymm::Ymm;

  template <int v>
  static __m256i dwords(const Words *w) {
    const __m256i zero = _mm256_setzero_si256(), half = v < 2 ? w->lo : w->hi;
    return v % 2 == 0 ? _mm256_unpacklo_epi8(half, zero) : _mm256_unpackhi_epi8(half, zero);
  }

  static __m256i dot(__m256i acc, __m256i taps, __m256i weights) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(taps, weights));
  }
};

}  // namespace

std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
  return Band<Avx2, 1>::Layout::packed_bytes(window, channels);
}
void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
  Band<Avx2, 1>::Layout::pack(packed, window, w);
}
std::size_t scratch_bytes(const DepthwiseWindow &window) { return Band<Avx2, 1>::scratch_bytes(window); }
void run_u8(const DepthwiseArgs &args) { run_strips<Avx2, std::uint8_t>(args); }
void run_f32(const DepthwiseArgs &args) { run_strips<Avx2, float>(args); }

}  // namespace qtn::kernels::depthwise_avx2_2tap
