// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in its 256-bit VEX form, for CPUs without AVX-512.
#include "kernels/gemm/in_place.hpp"
#include "kernels/gemm/ymm.hpp"

namespace qtn::kernels::gemm_avxvnni_6x16 {
namespace {

struct Vnni : Ymm, BroadcastTiles<Vnni>, InPlace<Vnni> {
  using Element = std::int8_t;
  static constexpr int kStep = 4, kInFlight = 10, kTogether = 2;

  /// The bare instruction, since GCC 12 spills the accumulators of the intrinsic.
  static __m256i add_products(__m256i acc, __m256i a, __m256i b) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(b));
    return acc;
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Vnni>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Vnni>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_ymm_u8<Vnni>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Vnni, YmmStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<Vnni, YmmStoreRows>(args); }

}  // namespace qtn::kernels::gemm_avxvnni_6x16
