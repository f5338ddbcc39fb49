// SPDX-License-Identifier: Apache-2.0
// The packed form of B in float32, laid out as Panels lays out bytes: a float takes the place of four of them, and in
// the place of the multipliers there are zeros.
#pragma once

#include "kernels/gemm/blocks.hpp"
#include "kernels/gemm_real/gemm_real.hpp"

namespace qtn::kernels {
namespace {

template <class V>
struct RealPanels {
  using Form = PanelsOf<V>;
  static constexpr std::size_t kFloat = sizeof(float);

  static void pack(void *packed, const GemmRealWeights &from) {
    char *panel = static_cast<char *>(packed);
    for (std::size_t j = 0; j < from.n;) {
      const std::size_t w = Form::width(from.n - j), used = from.n - j < w ? from.n - j : w;
      float *to = reinterpret_cast<float *>(panel);
      from.column == 1 ? copy_rows(to, from, j, w, used) : copy_columns(to, from, j, w, used);
      float *bias = to + from.k * w;
      for (std::size_t c = 0; c < 2 * w; ++c) bias[c] = c < used && from.bias ? from.bias[j + c] : 0.0f;
      panel += Form::panel_bytes(w, from.k * kFloat);
      j += used;
    }
  }

  static GemmRealPanel panel(void *packed, std::size_t n, std::size_t k, std::size_t j) {
    const std::size_t first = j / V::kNr * V::kNr, w = Form::width(n - first);
    auto *to =
        reinterpret_cast<float *>(static_cast<char *>(packed) + j / V::kNr * Form::panel_bytes(V::kNr, k * kFloat));
    return {to + (j - first), w, to + k * w + (j - first), w - (j - first)};
  }

 private:
  using Four [[gnu::vector_size(16)]] = float;

  static const float *column(const GemmRealWeights &from, std::size_t j) {
    return from.b + static_cast<std::ptrdiff_t>(j) * from.column;
  }

  template <std::size_t width>
  static void copy_whole_rows(float *to, const float *row, const GemmRealWeights &from) {
    for (std::size_t k = 0; k < from.k; ++k, to += width, row += from.row) __builtin_memcpy(to, row, width * kFloat);
  }

  static void copy_rows(float *to, const GemmRealWeights &from, std::size_t j, std::size_t w, std::size_t used) {
    const float *row = column(from, j);
    if (used == V::kNr) return copy_whole_rows<V::kNr>(to, row, from);
    if (used == V::kNr / 2 && used == w) return copy_whole_rows<V::kNr / 2>(to, row, from);
    for (std::size_t k = 0; k < from.k; ++k, to += w, row += from.row) {
      __builtin_memcpy(to, row, used * kFloat);
      for (std::size_t c = used; c < w; ++c) to[c] = 0.0f;
    }
  }

  /// Blocks as long as a line of cache: columns often lie a power of two apart, where few lines can stay.
  static void copy_columns(float *to, const GemmRealWeights &from, std::size_t j, std::size_t w, std::size_t used) {
    constexpr std::size_t kBlock = 16;
    for (std::size_t begin = 0; begin < from.k; begin += kBlock) {
      const std::size_t end = begin + kBlock < from.k ? begin + kBlock : from.k;
      std::size_t c = 0;
      if (from.row == 1 && end - begin == kBlock)
        for (; c + 4 <= used; c += 4)
          for (std::size_t k = begin; k < end; k += 4) turn(to + k * w + c, w, column(from, j + c) + k, from.column);
      for (; c < w; ++c) {
        const float *element = column(from, j + (c < used ? c : 0)) + static_cast<std::ptrdiff_t>(begin) * from.row;
        for (std::size_t k = begin; k < end; ++k, element += from.row) to[k * w + c] = c < used ? *element : 0.0f;
      }
    }
  }

  /// Four columns of four elements, as four rows.
  static void turn(float *to, std::size_t w, const float *from, std::ptrdiff_t column) {
    Four v[4];
    unroll<4>([&](auto c) { __builtin_memcpy(&v[c], from + c * column, sizeof v[c]); });
    const Four a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    const Four c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    const Four rows[] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                         __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
    unroll<4>([&](auto k) { __builtin_memcpy(to + k * w, &rows[k], sizeof rows[k]); });
  }
};

}  // namespace
}  // namespace qtn::kernels
