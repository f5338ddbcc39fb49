// SPDX-License-Identifier: Apache-2.0
// Tiles of up to 14 rows by 32 columns: 28 accumulators, two vectors of B and one broadcast dword of A fill the 32
// registers. Up to 4 rows are a matrix-vector product, bound by the stream of B: see run_thin.
#include "kernels/avx512.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/panel.hpp"
#include "kernels/gemm/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::gemm_avx512vnni_14x32 {
namespace {

constexpr int kMr = 14;
constexpr std::size_t kNr = 32;
using Weights = Panels<std::int8_t, 4, kNr, true>;

// A block of A stays in L1 next to the panel; when B itself does not fit L2, A's blocks grow so that B is read less
// often.
constexpr std::size_t kSmallBlock = 32 << 10, kLargeBlock = 384 << 10, kLargeWeights = 512 << 10;

/// Where one tile reads and writes.
struct Tile {
  const std::uint8_t *a;
  std::ptrdiff_t lda;
  const std::ptrdiff_t *runs;
  std::size_t run_count, run_steps;
  const char *weights;  ///< of the first run
  const void *bias, *multiplier;
  char *y;
  std::ptrdiff_t ldy;  ///< bytes
  std::size_t columns;
};

template <int mr, int nv>
struct Accumulators {
  __m512i v[mr][nv];

  void fill(const __m512i (&b)[nv]) {
    unroll<mr>([&](auto r) { unroll<nv>([&](auto j) { v[r][j] = b[j]; }); });
  }

  void add_products(const Rows<mr> &rows, const __m512i (&b)[nv]) {
    unroll<mr>([&](auto r) {
      __m512i a;
      rows.template broadcast<r>(a);
      unroll<nv>([&](auto j) { v[r][j] = dot4(v[r][j], a, b[j]); });
    });
  }
};

template <int nv>
void load_vectors(__m512i (&b)[nv], const void *from) {
  unroll<nv>([&](auto j) { b[j] = load(static_cast<const __m512i *>(from) + j); });
}

template <int nv>
void load_multipliers(__m512 (&b)[nv], const Tile &t) {
  unroll<nv>([&](auto j) { b[j] = _mm512_loadu_ps(static_cast<const float *>(t.multiplier) + 16 * j); });
}

/// Requantizes and stores rows in pairs: a pair of rows by 32 columns is one vector of bytes.
template <bool small>
class StoreU8 {
 public:
  static constexpr std::size_t kSize = 1;

  explicit StoreU8(const GemmArgs &args) : saturate_(args.range) {}

  template <int mr, int nv>
  void operator()(const Accumulators<mr, nv> &acc, const Tile &t) const {
    __m512 scale[nv];
    load_multipliers(scale, t);
    // Of two rows x and y, packing leaves lane i with dwords (x_i, x_i+4, y_i, y_i+4), or (x_i, y_i) for 16 columns.
    const __m512i order = nv == 2 ? _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
                                  : _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 1, 5, 9, 13, 0, 0, 0, 0);
    const __mmask32 mask = _cvtu32_mask32(t.columns >= 32 ? ~0u : (1u << t.columns) - 1);
    char *y = t.y;
    const Saturate saturate = saturate_;  // in registers: a store of bytes may change a member
    unroll<(mr + 1) / 2>([&](auto half) {
      constexpr int r = 2 * half, second = r + 1 < mr ? r + 1 : r;
      const auto q = [&](int i, int j) {
        const __m512 real = scaled(acc.v[i][j], scale[j]);
        return small ? saturate.round_small(real) : saturate.round(real);
      };
      __m512i bytes;
      if constexpr (nv == 2)
        bytes = saturate.bytes(saturate.words(q(r, 0), q(r, 1)), saturate.words(q(second, 0), q(second, 1)));
      else
        bytes = saturate.bytes(saturate.words(q(r, 0), q(second, 0)), _mm512_setzero_si512());
      bytes = _mm512_permutexvar_epi32(order, bytes);
      _mm256_mask_storeu_epi8(y, mask, _mm512_castsi512_si256(bytes));
      if (second != r) _mm256_mask_storeu_epi8(y + t.ldy, mask, _mm512_extracti64x4_epi64(bytes, 1));
      y += 2 * t.ldy;
    });
  }

 private:
  Saturate saturate_;
};

class StoreF32 {
 public:
  static constexpr std::size_t kSize = 4;

  explicit StoreF32(const GemmArgs &args) : lo_(_mm512_set1_ps(args.lo)), hi_(_mm512_set1_ps(args.hi)) {}

  template <int mr, int nv>
  void operator()(const Accumulators<mr, nv> &acc, const Tile &t) const {
    __m512 scale[nv];
    load_multipliers(scale, t);
    char *y = t.y;
    unroll<mr>([&](auto r) {
      unroll<nv>([&](auto j) {
        const int left = static_cast<int>(t.columns) - 16 * j;
        const __mmask16 mask = _cvtu32_mask16(left >= 16 ? 0xffff : left <= 0 ? 0 : (1u << left) - 1);
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m512 v = _mm512_min_ps(hi_, _mm512_max_ps(lo_, scaled(acc.v[r][j], scale[j])));
        _mm512_mask_storeu_ps(reinterpret_cast<float *>(y) + 16 * j, mask, v);
      });
      y += t.ldy;
    });
  }

 private:
  __m512 lo_, hi_;
};

template <int mr, int nv, class Store>
void run_tile(const Tile &t, const Store &store) {
  __m512i b[nv];
  Accumulators<mr, nv> acc;
  load_vectors(b, t.bias);
  acc.fill(b);
  const char *w = t.weights;
  for (std::size_t r = 0; r < t.run_count; ++r) {
    Rows<mr> rows(t.a + t.runs[r], t.lda);
    for (std::size_t s = t.run_steps; s != 0; --s) {
      load_vectors(b, w);
      acc.add_products(rows, b);
      rows.step();
      w += 64 * nv;
    }
  }
  store(acc, t);
}

/// Few rows cannot hide the latency of the dot product, so k is split into interleaved chains, added at the end; and
/// the time is that of reading B, so its lines are asked for early.
template <int mr, int nv, class Store>
void run_thin(const Tile &t, const Store &store) {
  constexpr int kChains = mr == 1 ? 4 : 2;
  constexpr std::size_t kAhead = 4096;
  __m512i b[nv];
  Accumulators<mr, nv> acc[kChains];
  unroll<nv>([&](auto j) { b[j] = _mm512_setzero_si512(); });
  unroll<kChains>([&](auto c) { acc[c].fill(b); });
  load_vectors(b, t.bias);
  acc[0].fill(b);
  const char *w = t.weights;
  for (std::size_t r = 0; r < t.run_count; ++r) {
    Rows<mr> rows(t.a + t.runs[r], t.lda);
    const auto step = [&](Accumulators<mr, nv> &chain) {
      load_vectors(b, w);
      unroll<nv>([&](auto j) { _mm_prefetch(w + kAhead + 64 * j, _MM_HINT_T0); });
      chain.add_products(rows, b);
      rows.step();
      w += 64 * nv;
    };
    std::size_t s = t.run_steps;
    for (; s >= kChains; s -= kChains) unroll<kChains>([&](auto c) { step(acc[c]); });
    for (; s != 0; --s) step(acc[0]);
  }
  unroll<kChains - 1>([&](auto c) {
    unroll<mr>([&](auto r) {
      unroll<nv>([&](auto j) { acc[0].v[r][j] = _mm512_add_epi32(acc[0].v[r][j], acc[c + 1].v[r][j]); });
    });
  });
  store(acc[0], t);
}

template <class Store>
using Run = void (*)(const Tile &, const Store &);

/// The tile functions by rows, for one number of vectors of columns.
template <class Store, int nv>
constexpr Run<Store> kRuns[kMr] = {run_thin<1, nv, Store>,  run_thin<2, nv, Store>,  run_thin<3, nv, Store>,
                                   run_thin<4, nv, Store>,  run_tile<5, nv, Store>,  run_tile<6, nv, Store>,
                                   run_tile<7, nv, Store>,  run_tile<8, nv, Store>,  run_tile<9, nv, Store>,
                                   run_tile<10, nv, Store>, run_tile<11, nv, Store>, run_tile<12, nv, Store>,
                                   run_tile<13, nv, Store>, run_tile<14, nv, Store>};

template <class Store>
void run(const GemmArgs &args) {
  if (args.m == 0) return;
  // A plain matrix is a picture of one strip and one run.
  constexpr GemmStrip kMatrix{0, 0, 1, 0};
  constexpr std::ptrdiff_t kStart = 0;
  const GemmPicture matrix{&kMatrix, 1, &kStart, Weights::steps(args.k) * 4, nullptr};
  const GemmPicture &x = args.picture ? *args.picture : matrix;

  const Store store(args);
  const Tiles tiles(args.m, kMr);
  const std::size_t block_bytes = args.n * args.k > kLargeWeights ? kLargeBlock : kSmallBlock;
  const std::size_t in_block = args.picture ? tiles.count() : block_bytes / (kMr * (args.k + 1)) + 1;
  const std::ptrdiff_t ldy = args.ldy * static_cast<std::ptrdiff_t>(Store::kSize);
  for (std::size_t first = 0; first < tiles.count(); first += in_block) {
    const std::size_t last = first + in_block < tiles.count() ? first + in_block : tiles.count();
    const char *panel = static_cast<const char *>(args.packed);
    for (std::size_t j = 0; j < args.n; j += kNr) {
      const std::size_t left = args.n - j, width = Weights::width(left);
      const char *packed_bias = panel + Weights::weight_bytes(width, args.k);
      const Run<Store> *run_of_rows = width == kNr ? kRuns<Store, 2> : kRuns<Store, 1>;
      Tile tile;
      tile.lda = args.lda;
      tile.run_steps = x.run_bytes / 4;
      tile.multiplier = packed_bias + width * sizeof(std::int32_t);
      tile.ldy = ldy;
      tile.columns = left < width ? left : width;
      for (std::size_t s = 0; s < x.strip_count; ++s) {
        const GemmStrip &strip = x.strips[s];
        const std::uint8_t *a = args.a + strip.at;
        char *y = static_cast<char *>(args.y) + static_cast<std::ptrdiff_t>(s * args.m) * ldy + j * Store::kSize;
        tile.runs = x.runs + strip.first_run;
        tile.run_count = strip.run_count;
        tile.weights = panel + strip.first_run * tile.run_steps * width * 4;
        tile.bias = x.bias ? static_cast<const void *>(x.bias + strip.bias_at + j) : packed_bias;
        for (std::size_t i = first; i < last; ++i) {
          const auto row = static_cast<std::ptrdiff_t>(tiles.begin(i));
          tile.a = a + row * args.lda;
          tile.y = y + row * ldy;
          run_of_rows[tiles.rows(i) - 1](tile, store);
        }
      }
      panel += Weights::panel_bytes(width, args.k);
    }
  }
}

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return Weights::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { Weights::pack(packed, w); }
void run_u8(const GemmArgs &args) { args.small ? run<StoreU8<true>>(args) : run<StoreU8<false>>(args); }
void run_f32(const GemmArgs &args) { run<StoreF32>(args); }

}  // namespace qtn::kernels::gemm_avx512vnni_14x32
