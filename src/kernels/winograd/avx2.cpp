// SPDX-License-Identifier: Apache-2.0
// Tiles of 2x2 outputs are rows of 16 matrices, one for each place of a transformed tile; so are the weights. A panel of
// columns at a time, the products of all places wait in scratch until they are transformed back. An odd last row or
// column of outputs is made with the one before it, once more, and the last rows of a matrix with those before them.
#include <algorithm>

#include "kernels/gemm/ymm.hpp"
#include "kernels/winograd/winograd.hpp"

namespace qtn::kernels::winograd_avx2_6x16 {
namespace {

struct Words : Ymm {
  static __m256i add_products(__m256i acc, __m256i a, __m256i b) { return sum(acc, _mm256_madd_epi16(a, b)); }
};

constexpr std::size_t kPlaces = 16, kVector = 32, kLine = 64;
constexpr std::size_t kMr = Words::kMr, kNr = Words::kNr;

/// Channels of a plane with those that fill up its last vector.
std::size_t padded(WinogradDepth depth) { return (depth.channels + 15) / 16 * 16; }
/// Steps of two channels, whose weights lie side by side.
std::size_t steps(WinogradDepth depth) { return ((depth.planes - 1) * padded(depth) + depth.channels + 1) / 2; }
std::size_t place_of_weights(WinogradDepth depth) { return steps(depth) * 2 * kVector; }
std::size_t panel_bytes(WinogradDepth depth) {
  return kPlaces * place_of_weights(depth) + kNr * (sizeof(std::int32_t) + sizeof(float));
}

/// Where the parts of scratch are. Places are not a power of two apart, which would meet in one set of the cache.
struct Layout {
  std::size_t across, tiles, plane, row, image_place, sums_place;

  Layout(std::ptrdiff_t rows, std::ptrdiff_t columns, WinogradDepth depth)
      : across(static_cast<std::size_t>(columns + 1) / 2),
        tiles(static_cast<std::size_t>(rows + 1) / 2 * across),
        plane(padded(depth) * sizeof(std::int16_t)),
        row(depth.planes * plane),
        image_place(std::max(tiles, kMr) * row + kLine),
        sums_place(std::max(tiles, kMr) * kNr * sizeof(std::int32_t) + kLine) {}

  std::size_t sums() const { return kPlaces * image_place; }
  std::size_t border() const { return sums() + kPlaces * sums_place; }
  std::size_t bytes() const { return border() + plane / 2; }
};

/// The first output of a tile, of which the last may begin one earlier.
struct Corner {
  std::ptrdiff_t row, column;

  Corner(const WinogradArgs &args, const Layout &layout, std::size_t tile)
      : row(args.first_row + std::min(static_cast<std::ptrdiff_t>(tile / layout.across * 2), args.rows - 2)),
        column(args.first_column + std::min(static_cast<std::ptrdiff_t>(tile % layout.across * 2), args.columns - 2)) {}
};

/// B' d of four vectors.
void transform_image(__m256i (&d)[4]) {
  const __m256i sum = _mm256_add_epi16(d[1], d[2]), difference = _mm256_sub_epi16(d[2], d[1]);
  d[0] = _mm256_sub_epi16(d[0], d[2]);
  d[3] = _mm256_sub_epi16(d[1], d[3]);
  d[1] = sum;
  d[2] = difference;
}

/// A tile of a plane, whose pixels outside lie at `border`.
void transform_tile(const WinogradArgs &args, const Layout &layout, const Corner &corner, const std::uint8_t *plane,
                    const std::uint8_t *border, char *to) {
  const std::uint8_t *pixels[4][4];
  for (std::ptrdiff_t r = 0; r < 4; ++r)
    for (std::ptrdiff_t c = 0; c < 4; ++c) {
      const std::ptrdiff_t row = corner.row - args.pad[0] + r, column = corner.column - args.pad[1] + c;
      const bool inside = plane && row >= 0 && row < args.height && column >= 0 && column < args.width;
      pixels[r][c] = inside ? plane + row * args.x_row + column * args.x_pixel : border;
    }
  for (std::size_t at = 0; at < layout.plane; at += kVector) {
    __m256i d[4][4];
    unroll<4>([&](auto c) {
      __m256i column[4];
      unroll<4>([&](auto r) {
        column[r] = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(pixels[r][c] + at / 2)));
      });
      transform_image(column);
      unroll<4>([&](auto r) { d[r][c] = column[r]; });
    });
    unroll<4>([&](auto r) {
      transform_image(d[r]);
      unroll<4>([&](auto c) { store(to + at + (4 * r + c) * layout.image_place, d[r][c]); });
    });
  }
}

void transform_image(const WinogradArgs &args, const Layout &layout, char *to) {
  auto *border = reinterpret_cast<std::uint8_t *>(to + layout.border());
  std::fill_n(border, layout.plane / 2, args.outside);
  for (std::size_t tile = 0; tile < layout.tiles; ++tile)
    for (std::size_t i = 0; i < args.depth.planes; ++i, to += layout.plane)
      transform_tile(args, layout, Corner(args, layout, tile), args.planes[i], border, to);
}

/// The sums of all tiles and of a panel at each place.
void multiply(const WinogradArgs &args, const Layout &layout, const char *image, const char *weights, char *sums) {
  const std::size_t count = steps(args.depth);
  for (std::size_t place = 0; place < kPlaces; ++place) {
    for (std::size_t tile = 0; tile < layout.tiles; tile += kMr) {
      const std::size_t first = layout.tiles < kMr ? 0 : std::min(tile, layout.tiles - kMr);
      Rows<kMr> rows(reinterpret_cast<const std::uint8_t *>(image + first * layout.row),
                     static_cast<std::ptrdiff_t>(layout.row));
      Accumulators<Words, kMr, 2> acc;
      __m256i b[2] = {Words::zero(), Words::zero()};
      acc.fill(b);
      const char *w = weights;
      for (std::size_t s = 0; s < count; ++s, w += 2 * kVector) {
        unroll<2>([&](auto j) { b[j] = load(w + j * kVector); });
        __builtin_prefetch(w + place_of_weights(args.depth), 0, 2);
        acc.add_products<0>(rows, b);
        rows.move(4);
      }
      unroll<kMr>(
          [&](auto r) { unroll<2>([&](auto j) { store(sums + (2 * (first + r) + j) * kVector, acc.v[r][j]); }); });
    }
    image += layout.image_place;
    weights += place_of_weights(args.depth);
    sums += layout.sums_place;
  }
}

/// A' m of four vectors.
void transform_sums(const __m256i (&m)[4], __m256i (&to)[2]) {
  const __m256i sum = _mm256_add_epi32(m[1], m[2]), difference = _mm256_sub_epi32(m[1], m[2]);
  to[0] = _mm256_add_epi32(m[0], sum);
  to[1] = _mm256_sub_epi32(difference, m[3]);
}

/// What the sums of all places come to for the outputs of a tile, in place: the first of each row at places 0 and 2.
void transform_sums(const Layout &layout, const char *bias, char *sums) {
  const auto at = [&](std::size_t place) { return sums + place * layout.sums_place; };
  for (std::size_t vector = 0; vector < 2 * layout.tiles; ++vector, sums += kVector) {
    const __m256i b = load(bias + vector % 2 * kVector);
    __m256i halves[2][4];
    unroll<4>([&](auto c) {
      __m256i column[4], half[2];
      unroll<4>([&](auto r) { column[r] = load(at(4 * r + c)); });
      transform_sums(column, half);
      unroll<2>([&](auto r) { halves[r][c] = half[r]; });
    });
    unroll<2>([&](auto r) {
      __m256i row[2];
      transform_sums(halves[r], row);
      unroll<2>([&](auto c) { store(at(2 * r + c), _mm256_add_epi32(_mm256_srai_epi32(row[c], 2), b)); });
    });
  }
}

template <class Store>
void store_sums(const WinogradArgs &args, const Layout &layout, const Store &store, const char *sums, Tile &to,
                char *y) {
  constexpr std::ptrdiff_t kSize = Store::kSize;
  to.ldy = args.y_pixel * kSize;
  for (std::size_t tile = 0; tile < layout.tiles; ++tile, sums += 2 * kVector) {
    const Corner corner(args, layout, tile);
    to.y = y + (corner.row * args.y_row + corner.column * args.y_pixel) * kSize;
    for (std::size_t r = 0; r < 2; ++r, to.y += args.y_row * kSize) {
      __m256i acc[2][2];
      unroll<2>([&](auto c) {
        unroll<2>([&](auto v) { acc[c][v] = load(sums + (2 * r + c) * layout.sums_place + v * kVector); });
      });
      store(acc, to);
    }
  }
}

template <class Store>
void run(const WinogradArgs &args) {
  GemmArgs bounds{};
  bounds.range = args.range;
  bounds.lo = args.lo;
  bounds.hi = args.hi;
  const Store store(bounds);
  const Layout layout(args.rows, args.columns, args.depth);
  char *image = static_cast<char *>(args.scratch), *sums = image + layout.sums();
  transform_image(args, layout, image);
  const char *panel = static_cast<const char *>(args.packed);
  for (std::size_t column = 0; column < args.n; column += kNr, panel += panel_bytes(args.depth)) {
    multiply(args, layout, image, panel, sums);
    Tile to{};
    to.bias = panel + kPlaces * place_of_weights(args.depth);
    to.multiplier = to.bias + kNr * sizeof(std::int32_t);
    to.columns = std::min(kNr, args.n - column);
    to.column = column;
    transform_sums(layout, to.bias, sums);
    store_sums(args, layout, store, sums, to, static_cast<char *>(args.y) + column * Store::kSize);
  }
}

/// 2G g of three rows, in four.
void transform_weights(const std::int16_t (&g)[3], std::int16_t (&to)[4]) {
  to[0] = static_cast<std::int16_t>(2 * g[0]);
  to[1] = static_cast<std::int16_t>(g[0] + g[1] + g[2]);
  to[2] = static_cast<std::int16_t>(g[0] - g[1] + g[2]);
  to[3] = static_cast<std::int16_t>(2 * g[2]);
}

/// 2G g (2G)' of a channel, each place `apart` elements from the one before.
void transform_weights(const std::int8_t *w, std::size_t channels, std::int16_t *to, std::size_t apart) {
  std::int16_t halves[4][3];
  for (std::size_t c = 0; c < 3; ++c) {
    std::int16_t column[3], made[4];
    for (std::size_t r = 0; r < 3; ++r) column[r] = w[(3 * r + c) * channels];
    transform_weights(column, made);
    for (std::size_t r = 0; r < 4; ++r) halves[r][c] = made[r];
  }
  for (std::size_t r = 0; r < 4; ++r) {
    std::int16_t made[4];
    transform_weights(halves[r], made);
    for (std::size_t c = 0; c < 4; ++c) to[(4 * r + c) * apart] = made[c];
  }
}

}  // namespace

std::size_t packed_bytes(std::size_t n, WinogradDepth depth) { return (n + kNr - 1) / kNr * panel_bytes(depth); }

std::size_t scratch_bytes(std::ptrdiff_t rows, std::ptrdiff_t columns, WinogradDepth depth) {
  return Layout(rows, columns, depth).bytes();
}

void pack(void *packed, const WinogradWeights &w) {
  __builtin_memset(packed, 0, packed_bytes(w.n, w.depth));
  const std::size_t place = place_of_weights(w.depth), channels = w.depth.channels;
  const std::int8_t *from = w.w;
  for (std::size_t j = 0; j < w.n; ++j) {
    char *panel = static_cast<char *>(packed) + j / kNr * panel_bytes(w.depth);
    auto *to = reinterpret_cast<std::int16_t *>(panel) + j % kNr * 2;
    for (std::size_t i = 0; i < w.depth.planes; ++i, from += 9 * channels, to += padded(w.depth) * kNr)
      for (std::size_t c = 0; c < channels; ++c)
        transform_weights(from + c, channels, to + c / 2 * 2 * kNr + c % 2, place / 2);
    auto *bias = reinterpret_cast<std::int32_t *>(panel + kPlaces * place);
    bias[j % kNr] = w.bias[j];
    reinterpret_cast<float *>(bias + kNr)[j % kNr] = w.multiplier[j];
  }
}

void run_u8(const WinogradArgs &args) { run<YmmStoreU8<false>>(args); }
void run_f32(const WinogradArgs &args) { run<YmmStoreF32>(args); }

}  // namespace qtn::kernels::winograd_avx2_6x16
