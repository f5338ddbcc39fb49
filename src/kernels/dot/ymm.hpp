// SPDX-License-Identifier: Apache-2.0
// What the two instruction sets of 256 bits share.
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/dot/tiles.hpp"

namespace qtn::kernels {
namespace {

struct Ymm {
  using Sums = __m256i;
  using Results = __m256i;
  static constexpr int kRows = 2;

  static Sums nothing() { return _mm256_setzero_si256(); }

  template <int rows>
  static Results reduce(const Sums (&sums)[rows][4]) {
    // Both lanes of 128 bits hold a part of the four sums of a row.
    __m256i parts[2] = {};
    unroll<rows>([&](auto i) {
      parts[i] =
          _mm256_hadd_epi32(_mm256_hadd_epi32(sums[i][0], sums[i][1]), _mm256_hadd_epi32(sums[i][2], sums[i][3]));
    });
    return _mm256_add_epi32(_mm256_permute2x128_si256(parts[0], parts[1], 0x20),
                            _mm256_permute2x128_si256(parts[0], parts[1], 0x31));
  }

  static Results repeated(__m128i v) { return _mm256_broadcastsi128_si256(v); }
  static Results load_results(const void *p) { return load(p); }
  static Results add(Results a, Results b) { return _mm256_add_epi32(a, b); }
  static Results subtract(Results a, Results b) { return _mm256_sub_epi32(a, b); }
  static Results scale(Results acc, Results multiplier) {
    return _mm256_castps_si256(scaled(acc, _mm256_castsi256_ps(multiplier)));
  }
  static Results add_floats(Results a, Results b) {
    return _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
  }
  template <int r>
  static __m128i row(Results v, Index<r>) {
    return _mm256_extracti128_si256(v, r);
  }
};

}  // namespace
}  // namespace qtn::kernels
