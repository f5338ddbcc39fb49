// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/fake/jobs.hpp"

namespace qtn::kernels::fake_avx2 {
namespace {

struct Avx2 {
  using Floats = __m256;
  using Mask = __m256;
  static constexpr std::size_t kCount = 8;

  static Floats all(float v) { return _mm256_set1_ps(v); }
  static Floats load(const float *p) { return _mm256_loadu_ps(p); }
  static void store(float *p, Floats v) { _mm256_storeu_ps(p, v); }
  static Floats load_part(const float *p, std::size_t count, float rest) {
    const __m256i lanes = first(count);
    return _mm256_blendv_ps(all(rest), _mm256_maskload_ps(p, lanes), _mm256_castsi256_ps(lanes));
  }
  static void store_part(float *p, std::size_t count, Floats v) { _mm256_maskstore_ps(p, first(count), v); }

  /// The second operand if one of the two is NaN.
  static Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  static Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats absolute(Floats v) { return _mm256_andnot_ps(all(-0.0f), v); }

  static Mask less(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static Mask less_equal(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  static Mask equal(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
  static Floats where(Mask mask, Floats v) { return _mm256_and_ps(mask, v); }
  static Floats where_not(Mask mask, Floats v) { return _mm256_andnot_ps(mask, v); }

  static void add_to(double *sums, Floats v) {
    _mm256_store_pd(sums, _mm256_load_pd(sums) + _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
    _mm256_store_pd(sums + 4, _mm256_load_pd(sums + 4) + _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
  }

 private:
  static __m256i first(std::size_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace

void quantize(const FakeArgs &args) { Fake<Avx2>::quantize(args); }
void backward(const FakeBackwardArgs &args) { Fake<Avx2>::backward(args); }
ClipSums clip_backward(const ClipArgs &args) { return Fake<Avx2>::clip_backward(args); }
void moments(std::size_t channels, std::size_t size, const float *x, const float *shift, PlanesMoments *of_channel) {
  Fake<Avx2>::moments(channels, size, x, shift, of_channel);
}
bool normalize(const PlanesArgs &args, float *z) { return Fake<Avx2>::normalize(args, z); }
void normalize_sums(const PlanesArgs &args, const float *dz, PlanesSums *sums) {
  Fake<Avx2>::normalize_sums(args, dz, sums);
}
void normalize_backward(const PlanesBackwardArgs &args) { Fake<Avx2>::normalize_backward(args); }

}  // namespace qtn::kernels::fake_avx2
