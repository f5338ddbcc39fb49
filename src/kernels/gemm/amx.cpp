// SPDX-License-Identifier: Apache-2.0
// Weights are packed as for avx512vnni, which is the faster one for few rows and little depth.
#include <algorithm>

#include "kernels/gemm/matrix_unit.hpp"

namespace qtn::kernels {
namespace gemm_avx512vnni_14x32 {
std::size_t packed_bytes(std::size_t n, std::size_t k);
void pack(void *packed, const GemmWeights &w);
void run_u8(const GemmArgs &args);
void run_f32(const GemmArgs &args);
void run_rows(const GemmArgs &args);
}  // namespace gemm_avx512vnni_14x32

namespace gemm_amx_32x32 {
namespace {

constexpr std::size_t kNr = 32, kFewRows = 4, kFewWeights = 512 << 10;
using Weights = Panels<std::int8_t, 4, kNr, true>;

/// The tiles of strips of rows. The last one of a strip begins early enough to be whole.
class Place {
 public:
  explicit Place(const GemmImage &image)
      : begin_(image.strips), strip_(image.strips), end_(image.strips + image.strip_count) {}

  bool is_first() const { return strip_ == begin_ && row_ == 0; }
  bool is_end() const { return strip_ == end_; }
  const GemmStrip &strip() const { return *strip_; }
  std::size_t rows() const { return std::min(strip_->rows, kTileRows); }
  std::size_t row() const { return std::min(row_, strip_->rows - rows()); }

  void next() {
    row_ += kTileRows;
    if (row_ < strip_->rows) return;
    row_ = 0;
    ++strip_;
  }

  /// Whether both may be tiles of a block.
  bool goes_with(const Place &other) const {
    const GemmStrip &a = *strip_, &b = *other.strip_;
    return a.runs == b.runs && a.run_count == b.run_count && a.lda == b.lda && a.bias_at == b.bias_at &&
           a.y_step == b.y_step && rows() == other.rows();
  }

 private:
  const GemmStrip *begin_, *strip_, *end_;
  std::size_t row_ = 0;
};

class Product {
 public:
  template <class Store>
  Product(const GemmArgs &args, const Store &store)
      : args_(args),
        ldy_(args.ldy * static_cast<std::ptrdiff_t>(Store::kSize)),
        panel_bytes_(Weights::panel_bytes(kNr, args.k)),
        pending_(store) {}

  void run() {
    if (args_.image) return run(*args_.image, kTileStep, 0);
    const std::size_t k = Weights::steps(args_.k) * 4, depth = std::min(k, kTileStep);
    const GemmRun whole{0, 0, k / depth * depth};
    const GemmStrip strip{0, args_.lda, args_.m, &whole, 1, 0, 0, 1};
    run({&strip, 1, args_.bias}, depth, k % depth);
  }

 private:
  static constexpr decltype(&multiply<1, 1>) kByTiles[2][2] = {{multiply<1, 1>, multiply<1, 2>},
                                                               {multiply<2, 1>, multiply<2, 2>}};

  /// Tiles of strips, two at a time, by all panels, in steps of `depth` and one for the rest.
  void run(const GemmImage &image, std::size_t depth, std::size_t rest) {
    std::size_t block_turn = 0, panel_turn = 0;
    for (Place place(image); !place.is_end(); block_turn ^= 1) {
      const std::int32_t *bias = image.bias ? image.bias + place.strip().bias_at : nullptr;
      Outputs &outputs = outputs_[block_turn];
      configuration_.set(place.rows(), depth);
      begin_block(place, outputs, rest);
      for (std::size_t j = 0; j < args_.n; j += kNr, panel_turn ^= 1) {
        Sums &sums = turns_[panel_turn].sums;
        const Panel next = panel(j, bias);
        kByTiles[outputs.tiles - 1][next.is_wide](block_, next.weights, sums, pending_);
        pending_.end();
        pending_.begin(sums, outputs, next);
      }
    }
    pending_.end();
  }

  void begin_block(Place &place, Outputs &to, std::size_t rest) {
    const GemmStrip &strip = place.strip();
    to.ldy = static_cast<std::ptrdiff_t>(strip.y_step) * ldy_;
    to.row_step = strip.y_step;
    to.rows = place.rows();
    to.tiles = 0;
    block_.lda = strip.lda;
    block_.runs = strip.runs;
    block_.runs_end = strip.runs + strip.run_count;
    block_.fetches = place.is_first() && args_.n * args_.k > kFewWeights;
    block_.has_last = rest != 0;
    block_.count_steps();
    for (const Place first = place; to.tiles < 2 && !place.is_end() && place.goes_with(first); place.next()) {
      const std::size_t t = to.tiles++;
      const GemmStrip &of = place.strip();
      block_.a[t] = args_.a + of.at + static_cast<std::ptrdiff_t>(place.row()) * of.lda;
      if (rest != 0) block_.copy_last(t, to.rows, of.runs->length + rest);
      to.row[t] = of.y_row + place.row() * of.y_step;
      to.y[t] = static_cast<char *>(args_.y) + static_cast<std::ptrdiff_t>(to.row[t]) * ldy_;
    }
    if (to.tiles == 1) block_.a[1] = block_.a[0];
  }

  Panel panel(std::size_t j, const std::int32_t *bias) const {
    const std::size_t left = args_.n - j, width = Weights::width(left);
    const char *weights = static_cast<const char *>(args_.packed) + j / kNr * panel_bytes_;
    const char *packed_bias = weights + Weights::weight_bytes(width, args_.k);
    return {weights,
            bias ? reinterpret_cast<const char *>(bias + j) : packed_bias,
            packed_bias + width * sizeof(std::int32_t),
            j,
            std::min(left, width),
            width == kNr};
  }

  // Not a page apart: loads of one would wait for stores of the other.
  struct alignas(64) Turn {
    Sums sums;
    char apart[1024];
  };

  const GemmArgs &args_;
  std::ptrdiff_t ldy_;  ///< bytes
  std::size_t panel_bytes_;
  Configuration configuration_;
  Pending pending_;
  Block block_;
  Outputs outputs_[2];
  Turn turns_[2];
};

bool few(const GemmArgs &args) { return args.m < kFewRows || !fills_step(args.k, kTileStep); }

template <class Store>
void run(const GemmArgs &args) {
  const Store store(args);
  Product(args, store).run();
}

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return gemm_avx512vnni_14x32::packed_bytes(n, k); }
std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }
void pack(void *packed, const GemmWeights &w) { gemm_avx512vnni_14x32::pack(packed, w); }

void run_u8(const GemmArgs &args) {
  if (few(args)) return gemm_avx512vnni_14x32::run_u8(args);
  if (!args.small) return run<ZmmStoreU8<Saturate>>(args);
  SaturateRelu::serves(args.range) ? run<ZmmStoreU8<SaturateRelu>>(args) : run<ZmmStoreU8<SaturateSmall>>(args);
}

void run_f32(const GemmArgs &args) { few(args) ? gemm_avx512vnni_14x32::run_f32(args) : run<ZmmStoreF32>(args); }

void run_rows(const GemmArgs &args) {
  if (few(args)) return gemm_avx512vnni_14x32::run_rows(args);
  args.rows->bare ? run<ZmmStoreRows<true>>(args) : run<ZmmStoreRows<false>>(args);
}

}  // namespace gemm_amx_32x32
}  // namespace qtn::kernels
