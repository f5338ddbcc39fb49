// SPDX-License-Identifier: Apache-2.0
// The table is four vectors of 64 entries, of which an instruction looks into two.
#include "kernels/avx512.hpp"
#include "kernels/lut/rows.hpp"

namespace qtn::kernels::lut_avx512vbmi {

void run(const LutArgs &args) {
  const __m512i entries[4] = {load(args.table), load(args.table + 64), load(args.table + 128), load(args.table + 192)};
  each_row(args, [&](std::uint8_t *y, const std::uint8_t *x) {
    for (std::size_t i = 0; i < args.columns; i += 64) {
      const __mmask64 mask = _cvtu64_mask64(first_lanes(args.columns - i));
      const __m512i v = _mm512_maskz_loadu_epi8(mask, x + i);
      const __m512i low = _mm512_permutex2var_epi8(entries[0], v, entries[1]),
                    high = _mm512_permutex2var_epi8(entries[2], v, entries[3]);
      _mm512_mask_storeu_epi8(y + i, mask, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(v), high));
    }
  });
}

}  // namespace qtn::kernels::lut_avx512vbmi
