// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"

#include "kernels/gemm/broadcast.hpp"
#include "kernels/gemm/in_place.hpp"
#include "kernels/gemm_real/panels.hpp"

namespace qtn::kernels::gemm_real_avx512 {
namespace {

struct Real : BroadcastTiles<Real>, InPlace<Real> {
  using Vector = __m512;
  using Element = std::int8_t;
  static constexpr int kMr = 14, kNr = 32, kLanes = 16, kShift = 0, kStep = 4, kRegisters = 32, kInFlight = 0,
                       kTogether = 4, kRowColumns = 64;
  static constexpr bool kInBlocks = true;

  static __m512 load(const char *p) { return _mm512_loadu_ps(p); }
  static __m512 zero() { return _mm512_setzero_ps(); }
  static __m512 sum(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }

  /// The bare instruction, as for bytes: see dot4().
  static __m512 add_products(__m512 acc, __m512 a, __m512 b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
  }
};

class Store {
 public:
  static constexpr std::size_t kSize = 4;

  explicit Store(const GemmArgs &args)
      : lo_(_mm512_set1_ps(args.lo)), hi_(_mm512_set1_ps(args.hi)), goes_on_(args.part && args.part->at > 0) {}

  template <int mr, int nv>
  void begin(__m512 (&acc)[mr][nv], const Tile &t) const {
    if (!goes_on_) return;
    unroll<nv>([&](auto j) {
      const __mmask16 mask = mask_of(t, j);
      const char *y = t.y + 64 * j;
      unroll<mr>([&](auto r) {
        acc[r][j] = _mm512_maskz_loadu_ps(mask, y);
        y += t.ldy;
      });
    });
  }

  template <int mr, int nv>
  void operator()(const __m512 (&acc)[mr][nv], const Tile &t) const {
    unroll<nv>([&](auto j) {
      const __mmask16 mask = mask_of(t, j);
      char *y = t.y + 64 * j;
      unroll<mr>([&](auto r) {
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m512 v = _mm512_min_ps(hi_, _mm512_max_ps(lo_, acc[r][j]));
        _mm512_mask_storeu_ps(reinterpret_cast<float *>(y), mask, v);
        y += t.ldy;
      });
    });
  }

 private:
  static __mmask16 mask_of(const Tile &t, int j) {
    return _cvtu32_mask16(static_cast<unsigned>(first_lanes(t.columns) >> 16 * j) & 0xffff);
  }

  __m512 lo_, hi_;
  bool goes_on_;
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Real>::packed_bytes(n, k); }
void pack(void *packed, const GemmRealWeights &w) { RealPanels<Real>::pack(packed, w); }
GemmRealPanel panel(void *packed, std::size_t n, std::size_t k, std::size_t j) {
  return RealPanels<Real>::panel(packed, n, k, j);
}
void run(const GemmArgs &args) { run_blocks<Real, Store>(args); }

}  // namespace qtn::kernels::gemm_real_avx512
