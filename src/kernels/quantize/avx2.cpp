// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/quantize/blocks.hpp"

namespace qtn::kernels::quantize_avx2 {
namespace {

struct Avx2 {
  static constexpr std::size_t kColumns = 32;

  class Quantizer {
   public:
    explicit Quantizer(const QuantizeArgs &args) : scale_(_mm256_set1_ps(args.scale)), saturate_(args.range) {}

    __m256i round(const float *p) const { return saturate_.round_any(_mm256_div_ps(_mm256_loadu_ps(p), scale_)); }
    /// Each lane holds four bytes of a, then of b, c, d.
    __m256i bytes(__m256i a, __m256i b, __m256i c, __m256i d) const {
      return saturate_.bytes(saturate_.words(a, b), saturate_.words(c, d));
    }

   private:
    __m256 scale_;
    Saturate saturate_;
  };

  static void row(const Quantizer &quantizer, const float *x, std::uint8_t *q) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes =
        quantizer.bytes(quantizer.round(x), quantizer.round(x + 8), quantizer.round(x + 16), quantizer.round(x + 24));
    store(q, _mm256_permutevar8x32_epi32(bytes, order));
  }

  /// A 4x4 transposition of bytes in both lanes.
  static void planes(const Quantizer &quantizer, const float *x, std::ptrdiff_t x_column, int used, ByRow &by_row) {
    const __m256i transpose =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const auto plane = [&](int k) { return k < used ? quantizer.round(x + k * x_column) : _mm256_setzero_si256(); };
    store(by_row, _mm256_shuffle_epi8(quantizer.bytes(plane(0), plane(1), plane(2), plane(3)), transpose));
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
