// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"
#include "kernels/dot/tiles.hpp"

namespace qtn::kernels::dot_avx512vnni {
namespace {

struct Vnni {
  using Bytes = __m512i;
  using Sums = __m512i;
  using Results = __m512i;
  static constexpr std::size_t kBytes = 64;
  static constexpr int kRows = 4;

  static Bytes load(const void *p) { return kernels::load(p); }
  static Bytes load_part(const void *p, std::size_t count) {
    return _mm512_maskz_loadu_epi8(_cvtu64_mask64(first_lanes(count)), p);
  }
  static Bytes ones() { return _mm512_set1_epi8(1); }
  static Sums nothing() { return _mm512_setzero_si512(); }
  static Sums dot(Sums acc, Bytes u8, Bytes s8) { return dot4(acc, u8, s8); }

  template <int rows>
  static Results reduce(const Sums (&sums)[rows][4]) {
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
    return fold(fold(parts[0], parts[1]), fold(parts[2], parts[3]));
  }

  static Results repeated(__m128i v) { return _mm512_broadcast_i32x4(v); }
  static Results load_results(const void *p) { return _mm512_load_si512(p); }
  static Results add(Results a, Results b) { return _mm512_add_epi32(a, b); }
  static Results subtract(Results a, Results b) { return _mm512_sub_epi32(a, b); }
  static Results scale(Results acc, Results multiplier) {
    return _mm512_castps_si512(scaled(acc, _mm512_castsi512_ps(multiplier)));
  }
  static Results add_floats(Results a, Results b) {
    return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
  }
  template <int r>
  static __m128i row(Results v, Index<r>) {
    return _mm512_extracti32x4_epi32(v, r);
  }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Vnni>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Vnni>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_avx512vnni
