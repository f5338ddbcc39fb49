// SPDX-License-Identifier: Apache-2.0
// sdot multiplies int8 by int8, so what is uint8 is read 128 lower. The sums of W, which are at hand, give that back;
// those of X are not, and two products of its elements with 64 do.
#include "kernels/dot/quad.hpp"

namespace qtn::kernels::dot_dotprod {
namespace {

struct Dotprod : Quad {
  static constexpr int kShift = 128;

  template <bool signed_w>
  static Sums products(Sums acc, Bytes x, Bytes w) {
    if constexpr (signed_w) return vdotq_s32(acc, lower(x), vreinterpretq_s8_u8(w));
    const int8x16_t s = vreinterpretq_s8_u8(x), half = vdupq_n_s8(64);
    return vdotq_s32(vdotq_s32(vdotq_s32(acc, lower(w), s), s, half), s, half);
  }
  template <bool is_signed>
  static Sums sums(Sums acc, Bytes v) {
    if constexpr (is_signed) return vdotq_s32(acc, vreinterpretq_s8_u8(v), vdupq_n_s8(1));
    return vreinterpretq_s32_u32(vdotq_u32(vreinterpretq_u32_s32(acc), v, vdupq_n_u8(1)));
  }

 private:
  static int8x16_t lower(Bytes v) { return vreinterpretq_s8_u8(veorq_u8(v, vdupq_n_u8(128))); }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Dotprod>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Dotprod>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_dotprod
