// SPDX-License-Identifier: Apache-2.0
// What the two instruction sets of 512 bits share.
#pragma once

#include "kernels/avx512.hpp"
#include "kernels/dot/tiles.hpp"

namespace qtn::kernels {
namespace {

struct Zmm {
  using Sums = __m512i;
  using Results = std::uint32_t __attribute__((vector_size(64)));
  using Integers = std::int32_t __attribute__((vector_size(64)));
  using Reals = float __attribute__((vector_size(64)));
  static constexpr int kRows = 4, kTogether = 4;

  static Sums nothing() { return _mm512_setzero_si512(); }

  template <int rows>
  static Results reduce(const Sums (*sums)[4]) {
    // Every lane of 128 bits holds a part of the four sums of a row.
    __m512i parts[4] = {};
    unroll<rows>([&](auto i) {
      const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[i][0], sums[i][1]),
                                          _mm512_unpackhi_epi32(sums[i][0], sums[i][1]));
      const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[i][2], sums[i][3]),
                                          _mm512_unpackhi_epi32(sums[i][2], sums[i][3]));
      parts[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    });
    const auto fold = [](__m512i a, __m512i b) {
      return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
    };
    return reinterpret_cast<Results>(fold(fold(parts[0], parts[1]), fold(parts[2], parts[3])));
  }

  static Results repeated(Words v) {
    return reinterpret_cast<Results>(_mm512_broadcast_i32x4(reinterpret_cast<__m128i>(v)));
  }
  template <int r>
  static Words row(Results results, Index<r>) {
    return reinterpret_cast<Words>(_mm512_extracti32x4_epi32(reinterpret_cast<__m512i>(results), r));
  }
};

}  // namespace
}  // namespace qtn::kernels
