// SPDX-License-Identifier: Apache-2.0
// The table is four times 64 entries: what is out of the range of one leaves a lane as it is.
#include "kernels/neon.hpp"

#include "kernels/lut/rows.hpp"

namespace qtn::kernels::lut_neon {

namespace {

void run_row(std::uint8_t *y, const std::uint8_t *x, std::size_t count, const std::uint8_t *table) {
  const uint8x16x4_t entries[4] = {vld1q_u8_x4(table), vld1q_u8_x4(table + 64), vld1q_u8_x4(table + 128),
                                   vld1q_u8_x4(table + 192)};
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t v = load(x + i);
    uint8x16_t r = vqtbl4q_u8(entries[0], v);
    r = vqtbx4q_u8(r, entries[1], vsubq_u8(v, vdupq_n_u8(64)));
    r = vqtbx4q_u8(r, entries[2], vsubq_u8(v, vdupq_n_u8(128)));
    store(y + i, vqtbx4q_u8(r, entries[3], vsubq_u8(v, vdupq_n_u8(192))));
  }
  for (; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace

void run(const LutArgs &args) {
  each_row(args, [&](std::uint8_t *y, const std::uint8_t *x) { run_row(y, x, args.columns, args.table); });
}

}  // namespace qtn::kernels::lut_neon
