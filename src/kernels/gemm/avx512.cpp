// SPDX-License-Identifier: Apache-2.0
// For CPUs with AVX-512 but no VNNI of either form.
#include "kernels/gemm/widened.hpp"
#include "kernels/gemm/zmm.hpp"

namespace qtn::kernels::gemm_avx512_14x32 {
namespace {

struct Avx512 : Zmm, BroadcastTiles<Avx512>, Widened<Avx512> {
  static constexpr std::size_t kWidth = 32;

  static __m512i add_products(__m512i acc, __m512i a, __m512i b) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
  }
  static void widen(void *to, const std::uint8_t *from) {
    _mm512_storeu_si512(to, _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from))));
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Avx512>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t m, std::size_t k) { return Avx512::scratch_bytes(m, k); }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Avx512>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_blocks<Avx512, ZmmStoreU8<Saturate>>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Avx512, ZmmStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<Avx512, ZmmStoreRows<false>>(args); }

}  // namespace qtn::kernels::gemm_avx512_14x32
