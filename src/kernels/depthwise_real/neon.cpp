// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include "kernels/depthwise_real/tiles.hpp"

namespace qtn::kernels::depthwise_real_neon {
namespace {

struct Neon {
  using Vector = float32x4_t;
  static constexpr std::size_t kLanes = 4;
  static constexpr int kPixels = 5, kVectors = 4;

  static Vector load(const float *p) { return vld1q_f32(p); }
  static Vector load_part(const float *p, std::size_t n) {
    float part[4] = {};
    for (std::size_t i = 0; i < n; ++i) part[i] = p[i];
    return vld1q_f32(part);
  }
  static void store(float *p, Vector v) { vst1q_f32(p, v); }
  static void store_part(float *p, Vector v, std::size_t n) {
    float part[4];
    vst1q_f32(part, v);
    for (std::size_t i = 0; i < n; ++i) p[i] = part[i];
  }
  static Vector set(float x) { return vdupq_n_f32(x); }
  static Vector fma(Vector acc, Vector a, Vector b) { return vfmaq_f32(acc, a, b); }
  /// Comparisons keep a NaN.
  static Vector clamp(Vector v, Vector lo, Vector hi) {
    const Vector above = vbslq_f32(vcltq_f32(v, lo), lo, v);
    return vbslq_f32(vcgtq_f32(above, hi), hi, above);
  }
};

}  // namespace

void run(const DepthwiseRealArgs &args) { DepthwiseTiles<Neon>::run(args); }

}  // namespace qtn::kernels::depthwise_real_neon
