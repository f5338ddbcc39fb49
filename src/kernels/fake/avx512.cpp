// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/fake/jobs.hpp"

namespace qtn::kernels::fake_avx512 {
namespace {

struct Avx512 {
  using Floats = __m512;
  using Mask = __mmask16;
  static constexpr std::size_t kCount = 16;

  static Floats all(float v) { return _mm512_set1_ps(v); }
  static Floats load(const float *p) { return _mm512_loadu_ps(p); }
  static void store(float *p, Floats v) { _mm512_storeu_ps(p, v); }
  static Floats load_part(const float *p, std::size_t count, float rest) {
    return _mm512_mask_loadu_ps(all(rest), first(count), p);
  }
  static void store_part(float *p, std::size_t count, Floats v) { _mm512_mask_storeu_ps(p, first(count), v); }

  /// The second operand if one of the two is NaN.
  static Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats absolute(Floats v) { return _mm512_abs_ps(v); }

  static Mask less(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Mask less_equal(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static Mask equal(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Mask both(Mask a, Mask b) { return _kand_mask16(a, b); }
  static Floats where(Mask mask, Floats v) { return _mm512_maskz_mov_ps(mask, v); }
  static Floats where_not(Mask mask, Floats v) { return _mm512_maskz_mov_ps(_knot_mask16(mask), v); }

  static void add_to(double *sums, Floats v) {
    _mm512_store_pd(sums, _mm512_load_pd(sums) + _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
    _mm512_store_pd(sums + 8, _mm512_load_pd(sums + 8) + _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
  }

 private:
  static Mask first(std::size_t count) { return static_cast<Mask>((1u << count) - 1); }
};

}  // namespace

void quantize(const FakeArgs &args) { Fake<Avx512>::quantize(args); }
void backward(const FakeBackwardArgs &args) { Fake<Avx512>::backward(args); }
ClipSums clip_backward(const ClipArgs &args) { return Fake<Avx512>::clip_backward(args); }
void moments(std::size_t channels, std::size_t size, const float *x, const float *shift, PlanesMoments *of_channel) {
  Fake<Avx512>::moments(channels, size, x, shift, of_channel);
}
bool normalize(const PlanesArgs &args, float *z) { return Fake<Avx512>::normalize(args, z); }
void normalize_sums(const PlanesArgs &args, const float *dz, PlanesSums *sums) {
  Fake<Avx512>::normalize_sums(args, dz, sums);
}
void normalize_backward(const PlanesBackwardArgs &args) { Fake<Avx512>::normalize_backward(args); }

}  // namespace qtn::kernels::fake_avx512
