// SPDX-License-Identifier: Apache-2.0
// Windows of 3x3 with stride 1 or 2 on AVX-512: two columns of outputs, row by row of the input. What a row adds to the
// sums of all outputs that it lies under is added at once, so each row is unpacked once.
#pragma once

#include "kernels/avx512.hpp"
#include "kernels/depthwise/band.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

inline bool rolls(const DepthwiseWindow &w) {
  return w.kernel[0] == 3 && w.kernel[1] == 3 && w.dilation[0] == 1 && w.dilation[1] == 1 &&
         w.stride[0] == w.stride[1] && w.stride[0] <= 2;
}

template <class V, int pixels, int stride>
class Rolling {
 public:
  explicit Rolling(const Band<V, pixels> &band) : band_(band) {}

  void run() const {
    for (std::ptrdiff_t c = 0; c < band_.args.columns; c += 2 * pixels) {
      // Pixels that share a vector are loaded one by one for each use, which is faster than gathering them first.
      const std::ptrdiff_t ix = c * stride - band_.window.pad[1];
      const bool is_inside = ix >= 0 && ix + (pixels - 1) * kApart + kColumns <= band_.args.width;
      if (pixels == 1 || is_inside)
        run_strip<pixels>(find_rows(ix), band_.template target<std::uint8_t>(c));
      else
        run_strip<1>(gather_rows(ix), band_.template target<std::uint8_t>(c));
    }
  }

 private:
  static constexpr int kColumns = 3 + stride;
  static constexpr std::ptrdiff_t kApart = 2 * stride;  // columns between pixels that share a vector

  /// The pixels under two outputs.
  struct Row {
    const std::uint8_t *x[5];
    std::ptrdiff_t apart;  ///< bytes from each to the next pixel that shares its vector
    std::ptrdiff_t unused[2];
  };

  /// `loads`: how many pixels, kApart columns apart, a vector is loaded from.
  template <int loads>
  [[gnu::noinline]] void run_strip(const Row *rows, Target<std::uint8_t> to) const {
    if constexpr (stride == 1)
      roll_by_one<loads>(rows, to);
    else
      roll_by_two<loads>(rows, to);
  }

  /// The dwords of the first output serve the second too, with weights shifted by a tap. The weights stay in registers:
  /// those of half of the channels, the low or the high eight of every lane, so there are two passes.
  template <int loads>
  [[gnu::always_inline]] void roll_by_one(const Row *rows, Target<std::uint8_t> to) const {
    const V v = band_.v;
    std::uint8_t *half = band_.results;
    roll_half<0, loads>(
        rows, [&](__m512i low) __attribute__((always_inline)) {
          V::store(half, low);
          half += 64;
        });
    half = band_.results;
    roll_half<1, loads>(
        rows, [&](__m512i high) __attribute__((always_inline)) {
          const __m512i low = load(half);
          put<0>(v, to, _mm512_unpacklo_epi64(low, high));
          put<1>(v, to, _mm512_unpackhi_epi64(low, high));
          half += 64;
          to.y += to.row;
        });
  }

  /// body(bytes) for each row of outputs: of every lane the eight channels of the first output, then of the second.
  template <int half, int loads, class Body>
  [[gnu::always_inline]] void roll_half(const Row *row, Body body) const {
    const Saturate saturate(band_.args.range);
    const char *packed = band_.packed + 128 * half, *bias = packed + 3 * 512, *multipliers = bias + 256;
    __m512i weights[3][2][2];  // [row of taps][output][vector]
    unroll<3>([&](auto ky) {
      unroll<2>([&](auto o) {
        unroll<2>([&](auto i) { weights[ky][o][i] = V::load_once(packed + 512 * ky + 256 * o + 64 * i); });
      });
    });

    __m512i taps[2];
    const auto fetch = [&] {
      const auto pixel = [&](int i) { return vector<loads>(row->x[i], row->apart); };
      const __m512i ab = unpack<half>(pixel(0), pixel(1)), cd = unpack<half>(pixel(2), pixel(3));
      taps[0] = _mm512_unpacklo_epi16(ab, cd);
      taps[1] = _mm512_unpackhi_epi16(ab, cd);
      ++row;
    };
    using Sums = __m512i[2][2];  // [output][vector]
    const auto add = [&](Sums &to, auto ky, const auto &from) {
      unroll<2>([&](auto o) { unroll<2>([&](auto i) { to[o][i] = dot4(from(o, i), taps[i], weights[ky][o][i]); }); });
    };
    const auto nothing = [&](auto, auto i) { return load(bias + 64 * i); };

    Sums done, above, beside;  // of outputs that lack no more rows, one and two
    const auto so_far = [&](auto o, auto i) { return above[o][i]; };
    fetch();
    add(above, Index<0>{}, nothing);
    fetch();
    add(above, Index<1>{}, so_far);
    add(beside, Index<0>{}, nothing);
    fetch();
    for (std::ptrdiff_t r = band_.rows; r > 0; --r) {
      add(done, Index<2>{}, so_far);
      add(above, Index<1>{}, [&](auto o, auto i) { return beside[o][i]; });
      add(beside, Index<0>{}, nothing);
      fetch();  // before it is needed: the results of this row take long
      const auto words = [&](int o) {
        const auto real = [&](int i) {
          return saturate.round(scaled(done[o][i], _mm512_castsi512_ps(load(multipliers + 64 * i))));
        };
        return saturate.words(real(0), real(1));
      };
      body(saturate.bytes(words(0), words(1)));
    }
  }

  template <int loads>
  [[gnu::always_inline]] void roll_by_two(const Row *row, Target<std::uint8_t> to) const {
    const V v = band_.v;
    const char *packed = band_.packed, *bias = packed + 3 * 256;
    typename V::Words pairs[3];
    const auto fetch = [&] {
      unroll<3>([&](auto i) {
        constexpr int next = i < 2 ? 2 * i + 1 : 2 * i;  // after the last comes a tap of weight zero
        pairs[i] = typename V::Words(vector<loads>(row->x[2 * i], row->apart), vector<loads>(row->x[next], row->apart));
      });
      ++row;
    };
    using Sums = __m512i[2][4];  // [output][vector]
    // Vectors before outputs: a weight that is loaded serves both.
    const auto each = [&](auto body) __attribute__((always_inline)) {
      unroll<4>([&](auto i) __attribute__((always_inline)) {
        unroll<2>([&](auto o) __attribute__((always_inline)) { body(o, i, V::template dwords<i>(pairs + o)); });
      });
    };
    const auto weights = [&](int ky, int i) { return load(packed + 256 * ky + 64 * i); };

    Sums above, done;
    fetch();
    each([&](auto o, auto i, __m512i taps) { above[o][i] = dot4(load(bias + 64 * i), taps, weights(0, i)); });
    fetch();
    for (std::ptrdiff_t r = band_.rows; r > 0; --r, to.y += to.row) {
      each([&](auto o, auto i, __m512i taps) { above[o][i] = dot4(above[o][i], taps, weights(1, i)); });
      fetch();
      each([&](auto o, auto i, __m512i taps) {
        done[o][i] = dot4(above[o][i], taps, weights(2, i));
        above[o][i] = dot4(load(bias + 64 * i), taps, weights(0, i));
      });
      fetch();
      unroll<2>([&](auto o) __attribute__((always_inline)) { put<o>(v, to, v.requantized(done[o], bias + 256)); });
    }
  }

  template <int out>
  [[gnu::always_inline]] static void put(const V &v, const Target<std::uint8_t> &to, __m512i result) {
    unroll<pixels>([&](auto p) __attribute__((always_inline)) {
      constexpr int column = 2 * p + out;
      if (column < to.left) v.template put<p, pixels>(to.y + column * to.pixel, result);
    });
  }

  template <int loads>
  static __m512i vector(const std::uint8_t *x, std::ptrdiff_t apart) {
    const std::uint8_t *from[loads];
    unroll<loads>([&](auto i) { from[i] = x + i * apart; });
    return V::gathered(from);
  }

  template <int half>
  static __m512i unpack(__m512i a, __m512i b) {
    return half == 0 ? _mm512_unpacklo_epi8(a, b) : _mm512_unpackhi_epi8(a, b);
  }

  /// The rows of the input with the columns from ix on. Those outside the image are one pixel.
  [[gnu::noinline]] const Row *find_rows(std::ptrdiff_t ix) const {
    const __m512i columns = _mm512_add_epi64(column_numbers(), _mm512_set1_epi64(ix));
    const __mmask8 inside = _mm512_cmplt_epu64_mask(columns, _mm512_set1_epi64(band_.args.width));
    const __m512i x = addresses(band_.pixel(band_.inside().begin, ix), band_.args.x_pixel);
    return list_rows(_mm512_mask_mov_epi64(address(band_.outside), inside, x),
                     _mm512_maskz_set1_epi64(inside, band_.args.x_row), kApart * band_.args.x_pixel);
  }

  [[gnu::noinline]] const Row *gather_rows(std::ptrdiff_t ix) const {
    return list_rows(addresses(band_.gather(ix, kColumns, kApart), 64), _mm512_set1_epi64(kColumns * 64), 0);
  }

  static __m512i column_numbers() { return _mm512_setr_epi64(0, 1, 2, 3, 4, 0, 0, 0); }
  static __m512i address(const std::uint8_t *p) { return _mm512_set1_epi64(reinterpret_cast<std::intptr_t>(p)); }
  static __m512i addresses(const std::uint8_t *x, std::ptrdiff_t pixel) {
    return _mm512_add_epi64(address(x), _mm512_mullo_epi64(column_numbers(), _mm512_set1_epi64(pixel)));
  }

  /// Rows are vectors: the first inside, and what each next one adds. There is one more than needed, since fetching
  /// runs ahead.
  const Row *list_rows(__m512i x, __m512i step, std::ptrdiff_t apart) const {
    constexpr __mmask8 kElement = 1 << offsetof(Row, apart) / sizeof(std::ptrdiff_t);
    const __m512i outside = _mm512_mask_set1_epi64(address(band_.outside), kElement, 0);
    const Inside in = band_.inside();
    auto *const rows = static_cast<Row *>(band_.table);
    list(rows, rows + in.begin, outside, __m512i{});
    list(rows + in.begin, rows + in.end, _mm512_mask_set1_epi64(x, kElement, apart),
         _mm512_mask_set1_epi64(step, kElement, 0));
    list(rows + in.end, rows + band_.in_rows(band_.window, band_.rows) + 1, outside, __m512i{});
    return rows;
  }

  static void list(Row *from, const Row *end, __m512i x, __m512i step) {
    for (; from < end; ++from, x = _mm512_add_epi64(x, step)) V::store(from, x);
  }

  const Band<V, pixels> &band_;
};

}  // namespace
}  // namespace qtn::kernels
