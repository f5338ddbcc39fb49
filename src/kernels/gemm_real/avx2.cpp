// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/gemm/broadcast.hpp"
#include "kernels/gemm/in_place.hpp"
#include "kernels/gemm_real/panels.hpp"

namespace qtn::kernels::gemm_real_avx2 {
namespace {

struct Real : BroadcastTiles<Real>, InPlace<Real> {
  using Vector = __m256;
  using Element = std::int8_t;
  static constexpr int kMr = 6, kNr = 16, kLanes = 8, kShift = 0, kStep = 4, kRegisters = 16, kInFlight = 0,
                       kTogether = 2, kRowColumns = 64;
  // Measured on a Zen 3: 0.87 to 1.0 of the time.
  static constexpr bool kInBlocks = true, kLeavesFetching = true;

  static __m256 load(const char *p) { return _mm256_loadu_ps(reinterpret_cast<const float *>(p)); }
  static __m256 zero() { return _mm256_setzero_ps(); }
  static __m256 sum(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
  static __m256 add_products(__m256 acc, __m256 a, __m256 b) { return _mm256_fmadd_ps(a, b, acc); }
};

class Store {
 public:
  static constexpr std::size_t kSize = 4;

  explicit Store(const GemmArgs &args)
      : lo_(_mm256_set1_ps(args.lo)), hi_(_mm256_set1_ps(args.hi)), goes_on_(args.part && args.part->at > 0) {}

  template <int mr, int nv>
  void begin(__m256 (&acc)[mr][nv], const Tile &t) const {
    if (!goes_on_) return;
    unroll<nv>([&](auto j) {
      const ColumnStore columns(t.columns, 8 * j);
      const char *y = t.y + 32 * j;
      unroll<mr>([&](auto r) {
        acc[r][j] = columns.load(y);
        y += t.ldy;
      });
    });
  }

  template <int mr, int nv>
  void operator()(const __m256 (&acc)[mr][nv], const Tile &t) const {
    unroll<nv>([&](auto j) {
      const ColumnStore store(t.columns, 8 * j);
      char *y = t.y + 32 * j;
      unroll<mr>([&](auto r) {
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m256 v = _mm256_min_ps(hi_, _mm256_max_ps(lo_, acc[r][j]));
        store(y, v);
        y += t.ldy;
      });
    });
  }

 private:
  __m256 lo_, hi_;
  bool goes_on_;
};

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return PanelsOf<Real>::packed_bytes(n, k); }
void pack(void *packed, const GemmRealWeights &w) { RealPanels<Real>::pack(packed, w); }
GemmRealPanel panel(void *packed, std::size_t n, std::size_t k, std::size_t j) {
  return RealPanels<Real>::panel(packed, n, k, j);
}
void run(const GemmArgs &args) { run_blocks<Real, Store>(args); }

}  // namespace qtn::kernels::gemm_real_avx2
