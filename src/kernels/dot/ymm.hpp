// SPDX-License-Identifier: Apache-2.0
// What the two instruction sets of 256 bits share.
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/dot/tiles.hpp"

namespace qtn::kernels {
namespace {

struct Ymm {
  using Sums = __m256i;
  static Sums nothing() { return _mm256_setzero_si256(); }

  template <int rows>
  static void reduce(__m128i (&out)[rows], const Sums (&sums)[rows][4]) {
    unroll<rows>([&](auto i) {
      const __m256i four =
          _mm256_hadd_epi32(_mm256_hadd_epi32(sums[i][0], sums[i][1]), _mm256_hadd_epi32(sums[i][2], sums[i][3]));
      out[i] = _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    });
  }
};

}  // namespace
}  // namespace qtn::kernels
