// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in its 256-bit VEX form, for CPUs without AVX-512.
#include "kernels/gemm_blocks/ymm.hpp"

namespace qtn::kernels::gemm_blocks_avxvnni {
namespace {

struct Vnni : Ymm {
  static constexpr int kUp = 0;  // what dot_bytes() takes off elements by itself

  /// The bare instruction, since GCC 12 spills the accumulators of the intrinsic.
  static __m256i dot_bytes(__m256i acc, __m256i w, __m256i x) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(w), "x"(x));
    return acc;
  }
  static __m256i dot_halves(__m256i acc, __m256i w, __m256i x, __m256i next) {
    return dot_bytes(dot_bytes(acc, low_halves(w), x), high_halves(w), next);
  }
};

template <int bits, bool zeros>
void run_form(const BlocksArgs &args) {
  run_two_rows<Vnni, bits, zeros>(args);
}

}  // namespace

#include "kernels/gemm_blocks/entries.inc"

}  // namespace qtn::kernels::gemm_blocks_avxvnni
