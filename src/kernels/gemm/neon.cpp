// SPDX-License-Identifier: Apache-2.0
// Exact products on every AArch64 CPU: smlal over 16-bit operands. B is packed as int16, A widened as it is read.
#include "kernels/gemm/lanes.hpp"

namespace qtn::kernels::gemm_neon_6x16 {
namespace {

struct Neon : LaneTiles<Neon> {
  using Element = std::int16_t;
  static constexpr int kMr = 6, kNr = 16, kStep = 1, kShift = 0, kLanes = 8;

  static int16x8_t row(const std::uint8_t *p) { return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(p))); }
  static int16x4_t weights(const char *p) { return vld1_s16(reinterpret_cast<const std::int16_t *>(p)); }
  template <int lane>
  static int32x4_t add_products(int32x4_t acc, int16x8_t row, int16x4_t w) {
    return vmlal_laneq_s16(acc, w, row, lane);
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Neon>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Neon>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_blocks<Neon, QuadStoreU8>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Neon, QuadStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<Neon, QuadStoreRows>(args); }

}  // namespace qtn::kernels::gemm_neon_6x16
