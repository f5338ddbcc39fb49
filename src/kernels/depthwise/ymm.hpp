// SPDX-License-Identifier: Apache-2.0
// What the instruction sets of 256 bits share.
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/depthwise/strips.hpp"

namespace qtn::kernels {
namespace {

class Ymm {
 public:
  using Vector = __m256i;
  static constexpr int kLanes = 2, kOuts = 2, kShift = 0;

  Ymm(const QuantizedRange &range, std::size_t used) : saturate_(range), used_(used) {}

  static __m256i load(const void *p) { return kernels::load(p); }
  /// Unpacking would read it twice from memory.
  static __m256i load_once(const void *p) {
    __m256i v = load(p);
    __asm__("" : "+x"(v));
    return v;
  }
  static void store(void *p, __m256i v) { kernels::store(p, v); }
  static __m256i fill(std::uint8_t byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

  static __m256i gathered(const std::uint8_t *const (&from)[1]) { return load(from[0]); }
  static __m256i gathered(const std::uint8_t *const (&from)[2]) {
    const auto lane = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from[i])); };
    return _mm256_inserti128_si256(_mm256_castsi128_si256(lane(0)), lane(1), 1);
  }

  template <int p, int pixels>
  [[gnu::always_inline]] void put(std::uint8_t *y, __m256i v) const {
    if (used_ == 32) return store(y, v);
    const __m128i half = _mm256_extracti128_si256(v, p);
    if (pixels == 2 && used_ == 16) return _mm_storeu_si128(reinterpret_cast<__m128i *>(y), half);
    alignas(32) char bytes[32];
    store(bytes, v);
    __builtin_memcpy(y, bytes + 16 * p, used_);
  }

  struct Words {
    __m256i lo, hi;

    Words() = default;
    Words(__m256i a, __m256i b) : lo(_mm256_unpacklo_epi8(a, b)), hi(_mm256_unpackhi_epi8(a, b)) {}
  };

  [[gnu::always_inline]] __m256i requantized(const __m256i (&acc)[4], const char *multipliers) const {
    const auto real = [&](int v) {
      return saturate_.round(scaled(acc[v], _mm256_castsi256_ps(load(multipliers + 32 * v))));
    };
    return saturate_.bytes(saturate_.words(real(0), real(1)), saturate_.words(real(2), real(3)));
  }

 private:
  Saturate saturate_;
  std::size_t used_;
};

}  // namespace
}  // namespace qtn::kernels
