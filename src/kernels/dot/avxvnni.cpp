// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in its 256-bit VEX form, for CPUs without AVX-512.
#include "kernels/dot/ymm.hpp"

namespace qtn::kernels::dot_avxvnni {
namespace {

struct Vnni : Ymm, MixedSigns<Vnni> {
  using Bytes = __m256i;
  static constexpr std::size_t kBytes = 32;

  static Bytes load(const void *p) { return kernels::load(p); }
  static Bytes load_part(const void *p, std::size_t count) {
    alignas(32) char padded[kBytes] = {};
    __builtin_memcpy(padded, p, count);
    return kernels::load(padded);
  }
  static Bytes ones() { return _mm256_set1_epi8(1); }
  /// The bare instruction, since GCC 12 spills the accumulators of the intrinsic.
  static Sums dot(Sums acc, Bytes u8, Bytes s8) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(u8), "x"(s8));
    return acc;
  }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Vnni>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Vnni>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_avxvnni
