// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include "kernels/fake/jobs.hpp"

namespace qtn::kernels::fake_neon {
namespace {

struct Neon {
  using Floats = float32x4_t;
  using Mask = uint32x4_t;
  static constexpr std::size_t kCount = 4;

  static Floats all(float v) { return vdupq_n_f32(v); }
  static Floats load(const float *p) { return vld1q_f32(p); }
  static void store(float *p, Floats v) { vst1q_f32(p, v); }
  static Floats load_part(const float *p, std::size_t count, float rest) {
    float lanes[kCount];
    for (std::size_t i = 0; i < kCount; ++i) lanes[i] = i < count ? p[i] : rest;
    return load(lanes);
  }
  static void store_part(float *p, std::size_t count, Floats v) {
    float lanes[kCount];
    store(lanes, v);
    for (std::size_t i = 0; i < count; ++i) p[i] = lanes[i];
  }

  /// The second operand if one of the two is NaN.
  static Floats min(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static Floats max(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Floats absolute(Floats v) { return vabsq_f32(v); }

  static Mask less(Floats a, Floats b) { return vcltq_f32(a, b); }
  static Mask less_equal(Floats a, Floats b) { return vcleq_f32(a, b); }
  static Mask equal(Floats a, Floats b) { return vceqq_f32(a, b); }
  static Mask both(Mask a, Mask b) { return vandq_u32(a, b); }
  static Floats where(Mask mask, Floats v) { return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(v))); }
  static Floats where_not(Mask mask, Floats v) {
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(v), mask));
  }

  static void add_to(double *sums, Floats v) {
    vst1q_f64(sums, vld1q_f64(sums) + vcvt_f64_f32(vget_low_f32(v)));
    vst1q_f64(sums + 2, vld1q_f64(sums + 2) + vcvt_high_f64_f32(v));
  }
};

}  // namespace

void quantize(const FakeArgs &args) { Fake<Neon>::quantize(args); }
void backward(const FakeBackwardArgs &args) { Fake<Neon>::backward(args); }
ClipSums clip_backward(const ClipArgs &args) { return Fake<Neon>::clip_backward(args); }
void moments(std::size_t channels, std::size_t size, const float *x, const float *shift, PlanesMoments *of_channel) {
  Fake<Neon>::moments(channels, size, x, shift, of_channel);
}
bool normalize(const PlanesArgs &args, float *z) { return Fake<Neon>::normalize(args, z); }
void normalize_sums(const PlanesArgs &args, const float *dz, PlanesSums *sums) {
  Fake<Neon>::normalize_sums(args, dz, sums);
}
void normalize_backward(const PlanesBackwardArgs &args) { Fake<Neon>::normalize_backward(args); }

}  // namespace qtn::kernels::fake_neon
