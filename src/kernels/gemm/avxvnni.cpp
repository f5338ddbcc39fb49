// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in its 256-bit VEX form, for CPUs without AVX-512. A is read in place.
#include "kernels/gemm/ymm.hpp"

namespace qtn::kernels::gemm_avxvnni_6x16 {
namespace {

// As for AVX512-VNNI: small blocks of A stay in L1; large ones save readings of weights that do not fit L2.
constexpr std::size_t kSmallBlock = 32 << 10, kLargeBlock = 384 << 10, kLargeWeights = 512 << 10;

struct Vnni : Ymm {
  using Element = std::int8_t;
  static constexpr int kStep = 4;

  /// The bare instruction, since GCC 12 spills the accumulators of the intrinsic.
  static __m256i add_products(__m256i acc, __m256i a, __m256i b) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(b));
    return acc;
  }

  static std::size_t block_tiles(const GemmArgs &args) {
    return (args.n * args.k > kLargeWeights ? kLargeBlock : kSmallBlock) / (kMr * (args.k + 1)) + 1;
  }

  static RowBlock prepare(const GemmArgs &args, std::size_t row, std::size_t) {
    return {args.a + static_cast<std::ptrdiff_t>(row) * args.lda, args.lda};
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Vnni>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Vnni>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_blocks<Vnni, YmmStoreU8>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Vnni, YmmStoreF32>(args); }

}  // namespace qtn::kernels::gemm_avxvnni_6x16
