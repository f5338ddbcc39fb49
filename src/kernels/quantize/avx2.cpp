// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/quantize/blocks.hpp"
#include "kernels/quotient.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::quantize_avx2 {
namespace {

struct Avx2 {
  static constexpr std::size_t kColumns = 32;

  class Quantizer {
   public:
    explicit Quantizer(const QuantizeArgs &args)
        : scale_(_mm256_set1_ps(args.scale)), inverse_(_mm256_set1_ps(inverse_of(args.scale))), saturate_(args.range) {}

    /// Each lane holds four bytes of v[0], then of v[1], v[2], v[3].
    __m256i bytes(const __m256 (&v)[4]) const {
      __m256i rounded[4];
      __m256 unsure = _mm256_setzero_ps();
      unroll<4>([&](auto k) {
        const __m256 product = _mm256_mul_ps(v[k], inverse_);
        rounded[k] = _mm256_cvtps_epi32(product);
        const __m256 off = _mm256_sub_ps(product, _mm256_cvtepi32_ps(rounded[k]));
        const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), off);
        unsure = _mm256_or_ps(unsure, _mm256_cmp_ps(magnitude, _mm256_set1_ps(kSureWithin), _CMP_NLE_UQ));
      });
      if (_mm256_movemask_ps(unsure)) [[unlikely]]
        unroll<4>([&](auto k) { rounded[k] = saturate_.round_any(_mm256_div_ps(v[k], scale_)); });
      return saturate_.bytes(saturate_.words(rounded[0], rounded[1]), saturate_.words(rounded[2], rounded[3]));
    }

   private:
    __m256 scale_, inverse_;
    Saturate saturate_;
  };

  static void row(const Quantizer &quantizer, const float *x, std::uint8_t *q) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256 parts[4];
    unroll<4>([&](auto k) { parts[k] = _mm256_loadu_ps(x + 8 * k); });
    store(q, _mm256_permutevar8x32_epi32(quantizer.bytes(parts), order));
  }

  /// A 4x4 transposition of bytes in both lanes.
  static void planes(const Quantizer &quantizer, const float *x, std::ptrdiff_t x_column, int used, ByRow &by_row) {
    const __m256i transpose =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256 planes[4];
    unroll<4>([&](auto k) { planes[k] = k < used ? _mm256_loadu_ps(x + k * x_column) : _mm256_setzero_ps(); });
    store(by_row, _mm256_shuffle_epi8(quantizer.bytes(planes), transpose));
  }

  class Dequantizer {
   public:
    explicit Dequantizer(const DequantizeArgs &args)
        : scale_(_mm256_set1_ps(args.scale)), zero_(_mm256_set1_epi32(args.zero)) {}

    __m256 operator()(__m256i dwords) const { return scaled(_mm256_sub_epi32(dwords, zero_), scale_); }

   private:
    __m256 scale_;
    __m256i zero_;
  };

  static void row(const Dequantizer &dequantizer, const std::uint8_t *q, float *x) {
    const __m256i dwords = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(q)));
    _mm256_storeu_ps(x, dequantizer(dwords));
  }

  static void planes(const Dequantizer &dequantizer, const ByRow &by_row, float *x, std::ptrdiff_t x_column, int used) {
    __m256i dwords = load(by_row);
    for (int k = 0; k < used; ++k, x += x_column, dwords = _mm256_srli_epi32(dwords, 8))
      _mm256_storeu_ps(x, dequantizer(_mm256_and_si256(dwords, _mm256_set1_epi32(255))));
  }
};

}  // namespace

void quantize(const QuantizeArgs &args) { quantize_blocks<Avx2>(args); }
void dequantize(const DequantizeArgs &args) { dequantize_blocks<Avx2>(args); }

}  // namespace qtn::kernels::quantize_avx2
