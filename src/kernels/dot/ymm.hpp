// SPDX-License-Identifier: Apache-2.0
// What the two instruction sets of 256 bits share.
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/dot/tiles.hpp"

namespace qtn::kernels {
namespace {

struct Ymm {
  using Sums = __m256i;
  using Results = std::uint32_t __attribute__((vector_size(32)));
  using Integers = std::int32_t __attribute__((vector_size(32)));
  using Reals = float __attribute__((vector_size(32)));
  static constexpr int kRows = 2, kTogether = 2;

  static Sums nothing() { return _mm256_setzero_si256(); }

  template <int rows>
  static Results reduce(const Sums (*sums)[4]) {
    // Both lanes of 128 bits hold a part of the four sums of a row.
    __m256i parts[2] = {};
    unroll<rows>([&](auto i) {
      parts[i] =
          _mm256_hadd_epi32(_mm256_hadd_epi32(sums[i][0], sums[i][1]), _mm256_hadd_epi32(sums[i][2], sums[i][3]));
    });
    return reinterpret_cast<Results>(_mm256_add_epi32(_mm256_permute2x128_si256(parts[0], parts[1], 0x20),
                                                      _mm256_permute2x128_si256(parts[0], parts[1], 0x31)));
  }

  static Results repeated(Words v) {
    return reinterpret_cast<Results>(_mm256_broadcastsi128_si256(reinterpret_cast<__m128i>(v)));
  }
  template <int r>
  static Words row(Results results, Index<r>) {
    return reinterpret_cast<Words>(_mm256_extracti128_si256(reinterpret_cast<__m256i>(results), r));
  }
};

}  // namespace
}  // namespace qtn::kernels
