// SPDX-License-Identifier: Apache-2.0
// The table is sixteen vectors of 16 entries: the low four bits of x pick an entry of each, the high four pick the
// vector.
#include "kernels/avx2.hpp"

#include "kernels/lut/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::lut_avx2 {

namespace {

void run_row(std::uint8_t *y, const std::uint8_t *x, std::size_t count, const std::uint8_t *table) {
  const __m256i low = _mm256_set1_epi8(15);
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i v = load(x + i), index = _mm256_and_si256(v, low);
    // Blending looks at bit 7 of a byte; the shifts bring bits 4 to 6 there.
    const __m256i bit[4] = {_mm256_slli_epi16(v, 3), _mm256_slli_epi16(v, 2), _mm256_slli_epi16(v, 1), v};
    const auto pick = [&](int k) {
      const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * k));
      return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index);
    };
    const auto pick2 = [&](int k) { return _mm256_blendv_epi8(pick(k), pick(k + 1), bit[0]); };
    const auto pick4 = [&](int k) { return _mm256_blendv_epi8(pick2(k), pick2(k + 2), bit[1]); };
    const auto pick8 = [&](int k) { return _mm256_blendv_epi8(pick4(k), pick4(k + 4), bit[2]); };
    store(y + i, _mm256_blendv_epi8(pick8(0), pick8(8), bit[3]));
  }
  for (; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace

void run(const LutArgs &args) {
  each_row(args, [&](std::uint8_t *y, const std::uint8_t *x) { run_row(y, x, args.columns, args.table); });
}

}  // namespace qtn::kernels::lut_avx2
