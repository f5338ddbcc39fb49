// SPDX-License-Identifier: Apache-2.0
// usmmla: two rows of A by two columns of B, eight of k, twice the products of a dot product in one instruction.
#include "kernels/gemm/quad.hpp"

namespace qtn::kernels::gemm_i8mm_6x16 {
namespace {

struct I8mm : InPlace<I8mm> {
  using Element = std::int8_t;
  static constexpr int kMr = 6, kNr = 16, kStep = 8, kShift = 0;

  template <int mr, int columns, class Store>
  static void run(const Tile &t, const Store &store) {
    constexpr int kPairs = (mr + 1) / 2, kSquares = columns / 2;
    int32x4_t acc[kPairs][kSquares];  // of 2 x 2 results
    unroll<kSquares>([&](auto j) {
      const int32x2_t bias = vld1_s32(reinterpret_cast<const std::int32_t *>(t.bias) + 2 * j);
      unroll<kPairs>([&](auto p) { acc[p][j] = vcombine_s32(bias, bias); });
    });
    const std::uint8_t *a[2 * kPairs];  // an odd last row is its own neighbour
    unroll<2 * kPairs>([&](auto r) { a[r] = t.a + (r < mr ? r : mr - 1) * t.lda; });
    const char *w = t.weights;
    for (std::size_t s = t.runs->length / kStep; s != 0; --s) {
      uint8x16_t rows[kPairs];
      unroll<kPairs>([&](auto p) { rows[p] = vcombine_u8(vld1_u8(a[2 * p]), vld1_u8(a[2 * p + 1])); });
      unroll<kSquares>([&](auto j) {
        const int8x16_t b = vld1q_s8(reinterpret_cast<const std::int8_t *>(w) + 16 * j);
        unroll<kPairs>([&](auto p) { acc[p][j] = vusmmlaq_s32(acc[p][j], rows[p], b); });
      });
      unroll<2 * kPairs>([&](auto r) { a[r] += 8; });
      w += 16 * kSquares;
    }
    int32x4_t by_row[mr][kSquares / 2];
    unroll<mr>([&](auto r) {
      unroll<kSquares / 2>([&](auto j) {
        const int64x2_t left = vreinterpretq_s64_s32(acc[r / 2][2 * j]);
        const int64x2_t right = vreinterpretq_s64_s32(acc[r / 2][2 * j + 1]);
        by_row[r][j] = vreinterpretq_s32_s64(r % 2 ? vtrn2q_s64(left, right) : vtrn1q_s64(left, right));
      });
    });
    store(by_row, t);
  }
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<I8mm>::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { PanelsOf<I8mm>::pack(packed, w); }
void run_u8(const GemmArgs &args) { run_blocks<I8mm, QuadStoreU8>(args); }
void run_f32(const GemmArgs &args) { run_blocks<I8mm, QuadStoreF32>(args); }
void run_rows(const GemmArgs &args) { run_blocks<I8mm, QuadStoreRows>(args); }

}  // namespace qtn::kernels::gemm_i8mm_6x16
