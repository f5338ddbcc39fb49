// SPDX-License-Identifier: Apache-2.0
// usdot, which comes with the matrix products.
#include "kernels/dot/quad.hpp"

namespace qtn::kernels::dot_i8mm {
namespace {

struct I8mm : Quad, MixedSigns<I8mm> {
  static Bytes ones() { return vdupq_n_u8(1); }
  static Sums dot(Sums acc, Bytes u8, Bytes s8) { return vusdotq_s32(acc, u8, vreinterpretq_s8_u8(s8)); }
};

}  // namespace

void run(const DotArgs &args) { run_dot<I8mm>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<I8mm>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_i8mm
