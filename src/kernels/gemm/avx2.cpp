// SPDX-License-Identifier: Apache-2.0
// Exact products on AVX2: vpmaddwd over 16-bit operands, not the saturating vpmaddubsw, and no slower for it. B is
// packed as int16; a block of A is widened once into scratch and read for every panel.
#include "kernels/gemm/tile_6x16.hpp"

namespace qtn::kernels::gemm_avx2_6x16 {
namespace {

constexpr std::size_t kBlockBytes = 192 << 10;  // of widened A, in L2

struct Dot {
  using Element = std::int16_t;
  static constexpr int kStep = 2;

  static __m256i add(__m256i acc, __m256i a, __m256i b) { return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)); }

  static std::size_t row_bytes(std::size_t k) { return (k + 15) / 16 * 32; }

  static std::size_t block_tiles_of(std::size_t k) { return kBlockBytes / (kMr * (row_bytes(k) + 1)) + 1; }

  static std::size_t block_tiles(const GemmArgs &args) { return block_tiles_of(args.k); }

  static std::size_t scratch_bytes(std::size_t k) { return block_tiles_of(k) * kMr * row_bytes(k); }

  static RowBlock prepare(const GemmArgs &args, std::size_t row, std::size_t rows) {
    const std::ptrdiff_t lda = static_cast<std::ptrdiff_t>(row_bytes(args.k));
    char *to = static_cast<char *>(args.scratch);
    const std::uint8_t *from = args.a + static_cast<std::ptrdiff_t>(row) * args.lda;
    for (std::size_t i = 0; i < rows; ++i, to += lda, from += args.lda)
      for (std::size_t k = 0; k < args.k; k += 16)
        store(to + 2 * k, _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + k))));
    return {static_cast<const std::uint8_t *>(args.scratch), lda};
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Dot>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t k) { return Dot::scratch_bytes(k); }
void pack(void *packed, const GemmWeights &w) { PanelsOf<Dot>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_blocks<Dot, StoreU8>(args); }
void run_f32(const GemmArgs &args) { run_blocks<Dot, StoreF32>(args); }

}  // namespace qtn::kernels::gemm_avx2_6x16
