// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/widened.hpp"
#include "kernels/gemm/ymm.hpp"

namespace qtn::kernels::gemm_avx2_6x16 {
namespace {

struct Avx2 : Ymm, BroadcastTiles<Avx2>, Widened<Avx2> {
  static constexpr std::size_t kWidth = 16;

  static __m256i add_products(__m256i acc, __m256i a, __m256i b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
  }
  static void widen(void *to, const std::uint8_t *from) {
    store(to, _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))));
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Avx2>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t m, std::size_t k) { return Avx2::scratch_bytes(m, k); }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Avx2>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_ymm_u8<Avx2>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Avx2, YmmStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<Avx2, YmmStoreRows>(args); }

}  // namespace qtn::kernels::gemm_avx2_6x16
