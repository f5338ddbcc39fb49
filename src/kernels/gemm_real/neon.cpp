// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include "kernels/gemm/in_place.hpp"
#include "kernels/gemm_real/panels.hpp"
#include "kernels/sum_blocks.hpp"

namespace qtn::kernels::gemm_real_neon {
namespace {

/// A vector holds four steps of a row of A; one lane at a time is multiplied by columns of B.
struct Real : InPlace<Real> {
  using Vector = float32x4_t;
  using Element = std::int8_t;
  static constexpr int kMr = 6, kNr = 16, kShift = 0, kStep = 4, kLanes = 4;

  template <int lane>
  static float32x4_t add_product(float32x4_t acc, float32x4_t b, float32x4_t row) {
    return vfmaq_laneq_f32(acc, b, row, lane);
  }

  template <int mr, int columns, class Store>
  static void run(const Tile &t, const Store &store) {
    constexpr int nv = columns / kLanes;
    TileSums<Real, mr, nv> acc;
    EarlierBlocks<TileSums<Real, mr, nv>> earlier(t.end() / kStep);
    float32x4_t rows[mr];
    const float *w = nullptr;
    unroll<nv>([&](auto j) {
      const float32x4_t bias = vld1q_f32(reinterpret_cast<const float *>(t.bias) + kLanes * j);
      unroll<mr>([&](auto r) { acc.v[r][j] = bias; });
    });
    store.begin(acc.v, t);
    const auto add = [&](auto lane) __attribute__((always_inline)) {
      unroll<nv>([&](auto j) {
        const float32x4_t b = vld1q_f32(w + kLanes * j);
        unroll<mr>([&](auto r) { acc.v[r][j] = add_product<lane>(acc.v[r][j], b, rows[r]); });
      });
      w += columns;
    };
    for (const GemmRun *run = t.runs; run != t.runs + t.run_count; ++run) {
      const std::uint8_t *a = t.a + run->at;
      w = reinterpret_cast<const float *>(t.weights) + run->k / kStep * columns;
      const auto load_rows = [&]() __attribute__((always_inline)) {
        unroll<mr>([&](auto r) { rows[r] = vld1q_f32(reinterpret_cast<const float *>(a + r * t.lda)); });
      };
      std::size_t k = run->k / kStep;
      for (std::size_t left = run->length / kStep, count; left != 0; left -= count, k += count) {
        count = in_sum_block(k, left);
        earlier.enter(k, acc);
        int s = static_cast<int>(count);
        for (; s >= kLanes; s -= kLanes, a += kLanes * kStep) {
          load_rows();
          unroll<kLanes>(add);
        }
        if (s > 0) {
          load_rows();
          unroll<kLanes - 1>([&](auto lane) {
            if (lane < s) add(lane);
          });
          a += s * kStep;
        }
      }
    }
    earlier.end(acc);
    store(acc.v, t);
  }
};

class Store {
 public:
  static constexpr std::size_t kSize = 4;

  explicit Store(const GemmArgs &args)
      : lo_(vdupq_n_f32(args.lo)), hi_(vdupq_n_f32(args.hi)), goes_on_(args.part && args.part->at > 0) {}

  template <int mr, int nv>
  void begin(float32x4_t (&acc)[mr][nv], const Tile &t) const {
    if (!goes_on_) return;
    unroll<mr>([&](auto r) {
      const float *y = reinterpret_cast<const float *>(t.y + r * t.ldy);
      unroll<nv>([&](auto j) {
        const std::size_t first = 4 * j;
        if (first + 4 <= t.columns) {
          acc[r][j] = vld1q_f32(y + first);
        } else if (first < t.columns) {
          float part[4] = {};
          for (std::size_t c = first; c < t.columns; ++c) part[c - first] = y[c];
          acc[r][j] = vld1q_f32(part);
        }
      });
    });
  }

  template <int mr, int nv>
  void operator()(const float32x4_t (&acc)[mr][nv], const Tile &t) const {
    unroll<mr>([&](auto r) {
      float *y = reinterpret_cast<float *>(t.y + r * t.ldy);
      unroll<nv>([&](auto j) {
        // Comparisons keep a NaN.
        const float32x4_t above = vbslq_f32(vcltq_f32(acc[r][j], lo_), lo_, acc[r][j]);
        const float32x4_t v = vbslq_f32(vcgtq_f32(above, hi_), hi_, above);
        const std::size_t begin = 4 * j;
        if (begin + 4 <= t.columns) {
          vst1q_f32(y + begin, v);
        } else if (begin < t.columns) {
          float part[4];
          vst1q_f32(part, v);
          for (std::size_t c = begin; c < t.columns; ++c) y[c] = part[c - begin];
        }
      });
    });
  }

 private:
  float32x4_t lo_, hi_;
  bool goes_on_;
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Real>::packed_bytes(n, k); }
void pack(void *packed, const GemmRealWeights &w) { RealPanels<Real>::pack(packed, w); }
GemmRealPanel panel(void *packed, std::size_t n, std::size_t k, std::size_t j) {
  return RealPanels<Real>::panel(packed, n, k, j);
}
void run(const GemmArgs &args) { run_blocks<Real, Store>(args); }

}  // namespace qtn::kernels::gemm_real_neon
