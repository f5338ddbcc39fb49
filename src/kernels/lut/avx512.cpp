// SPDX-License-Identifier: Apache-2.0
// The table is sixteen vectors of 16 entries: the low four bits of x pick an entry of each, the high four pick the
// vector.
#include "kernels/avx512.hpp"

#include "kernels/lut/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::lut_avx512 {

void run(const LutArgs &args) {
  __m512i entries[16];
  unroll<16>([&](auto i) {
    entries[i] = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i *>(args.table + 16 * i)));
  });
  const __m512i low = _mm512_set1_epi8(15);
  each_row(args, [&](std::uint8_t *y, const std::uint8_t *x) {
    for (std::size_t i = 0; i < args.columns; i += 64) {
      const __mmask64 mask = _cvtu64_mask64(first_lanes(args.columns - i));
      const __m512i v = _mm512_maskz_loadu_epi8(mask, x + i), index = _mm512_and_si512(v, low);
      const __mmask64 bit4 = _mm512_test_epi8_mask(v, _mm512_set1_epi8(16)),
                      bit5 = _mm512_test_epi8_mask(v, _mm512_set1_epi8(32)),
                      bit6 = _mm512_test_epi8_mask(v, _mm512_set1_epi8(64)), bit7 = _mm512_movepi8_mask(v);
      __m512i found[8];
      unroll<8>([&](auto k) {
        found[k] =
            _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(entries[2 * k], index), bit4, entries[2 * k + 1], index);
      });
      unroll<4>([&](auto k) { found[k] = _mm512_mask_mov_epi8(found[2 * k], bit5, found[2 * k + 1]); });
      unroll<2>([&](auto k) { found[k] = _mm512_mask_mov_epi8(found[2 * k], bit6, found[2 * k + 1]); });
      _mm512_mask_storeu_epi8(y + i, mask, _mm512_mask_mov_epi8(found[0], bit7, found[1]));
    }
  });
}

}  // namespace qtn::kernels::lut_avx512
