// SPDX-License-Identifier: Apache-2.0
// sdot multiplies int8 by int8: A is read 128 lower.
#include "kernels/gemm/lanes.hpp"

namespace qtn::kernels::gemm_dotprod_6x16 {
namespace {

struct Dotprod : LaneTiles<Dotprod> {
  using Element = std::int8_t;
  static constexpr int kMr = 6, kNr = 16, kStep = 4, kShift = 128, kLanes = 4;

  static int8x16_t row(const std::uint8_t *p) { return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(128))); }
  static int8x16_t weights(const char *p) { return vld1q_s8(reinterpret_cast<const std::int8_t *>(p)); }
  template <int lane>
  static int32x4_t add_products(int32x4_t acc, int8x16_t row, int8x16_t w) {
    return vdotq_laneq_s32(acc, w, row, lane);
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Dotprod>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Dotprod>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_blocks<Dotprod, QuadStoreU8>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Dotprod, QuadStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<Dotprod, QuadStoreRows>(args); }

}  // namespace qtn::kernels::gemm_dotprod_6x16
