// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/in_place.hpp"
#include "kernels/gemm/zmm.hpp"

namespace qtn::kernels::gemm_avx512vnni_14x32 {
namespace {

struct Vnni : Zmm, BroadcastTiles<Vnni>, InPlace<Vnni> {
  using Element = std::int8_t;
  static constexpr int kStep = 4, kInFlight = 10, kTogether = 2;

  static __m512i add_products(__m512i acc, __m512i a, __m512i b) { return dot4(acc, a, b); }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Vnni>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Vnni>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_zmm_u8<Vnni>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Vnni, ZmmStoreF32>(args); }
void run_rows(const GemmArgs &args) {
  args.rows->bare ? run_blocks<Vnni, ZmmStoreRows<true>>(args) : run_blocks<Vnni, ZmmStoreRows<false>>(args);
}

}  // namespace qtn::kernels::gemm_avx512vnni_14x32
