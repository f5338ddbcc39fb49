// SPDX-License-Identifier: Apache-2.0
// vpmaddubsw, which adds neighbouring products in 16 bits: for weights with which no such sum saturates. Half the
// instructions of 16-bit operands for the same products, and A is read where it lies.
#include "kernels/gemm/in_place.hpp"
#include "kernels/gemm/ymm.hpp"

namespace qtn::kernels::gemm_avx2pairs_6x16 {
namespace {

alignas(32) constexpr std::int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

struct Pairs : Ymm, BroadcastTiles<Pairs>, InPlace<Pairs> {
  using Element = std::int8_t;
  static constexpr int kStep = 4, kInFlight = 1, kTogether = 1;

  static __m256i add_products(__m256i acc, __m256i a, __m256i b) {
    __m256i products = _mm256_maddubs_epi16(a, b);
    // Ones stay in memory: accumulators and operands take all registers.
    __asm__("vpmaddwd %1, %0, %0" : "+x"(products) : "m"(kOnes));
    return sum(acc, products);
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Pairs>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Pairs>::pack(packed, w); }
/// Clamps always: few networks have such weights, and the other tiles take 12 KB.
void run_u8(const GemmArgs &args) { run_blocks<Pairs, YmmStoreU8<false>>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Pairs, YmmStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<Pairs, YmmStoreRows>(args); }

}  // namespace qtn::kernels::gemm_avx2pairs_6x16
