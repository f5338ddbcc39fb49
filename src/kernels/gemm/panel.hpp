// SPDX-License-Identifier: Apache-2.0
// The packed form of B: panels of `nr` columns, each [k / kr][nr][kr] elements of type T, then bias[nr] and
// multiplier[nr]. A last panel of at most nr / 2 columns is half as wide where the kernel has such a tile. Padding is
// zero, which makes whatever is read of A beyond k harmless. A kernel that takes `shift` off every element of A finds
// it in the bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/gemm/gemm.hpp"

namespace qtn::kernels {
namespace {

template <class T, int kr, int nr, bool kHalfTail, int shift = 0>
struct Panels {
  static constexpr std::size_t steps(std::size_t k) { return (k + kr - 1) / kr; }

  static constexpr std::size_t width(std::size_t columns_left) {
    return kHalfTail && columns_left <= nr / 2 ? nr / 2 : nr;
  }

  /// Bytes of the weights of a panel, before its bias.
  static constexpr std::size_t weight_bytes(std::size_t w, std::size_t k) { return steps(k) * w * kr * sizeof(T); }

  static constexpr std::size_t panel_bytes(std::size_t w, std::size_t k) {
    return weight_bytes(w, k) + w * (sizeof(std::int32_t) + sizeof(float));
  }

  static std::size_t packed_bytes(std::size_t n, std::size_t k) {
    const std::size_t tail = n % nr;
    return n / nr * panel_bytes(nr, k) + (tail ? panel_bytes(width(tail), k) : 0);
  }

  static void pack(void *packed, const GemmWeights &from) {
    char *panel = static_cast<char *>(packed);
    for (std::size_t j = 0; j < from.n;) {
      const std::size_t w = width(from.n - j), used = from.n - j < w ? from.n - j : w;
      pack_panel(panel, from, j, w, used);
      panel += panel_bytes(w, from.k);
      j += used;
    }
  }

 private:
  static void pack_panel(char *panel, const GemmWeights &from, std::size_t j, std::size_t w, std::size_t used) {
    T *to = reinterpret_cast<T *>(panel);
    const std::size_t count = steps(from.k);
    if (from.step == 1)
      pack_columns(to, from, j, w, used);
    else
      pack_rows(to, from, j, w, used);
    std::int32_t *bias = reinterpret_cast<std::int32_t *>(to + count * w * kr);
    float *multiplier = reinterpret_cast<float *>(bias + w);
    for (std::size_t c = 0; c < w; ++c) {
      bias[c] = c < used ? from.bias[j + c] + shift * column_sum(from, j + c) : 0;
      multiplier[c] = c < used ? from.multiplier[j + c] : 0;
    }
  }

  static void pack_columns(T *to, const GemmWeights &from, std::size_t j, std::size_t w, std::size_t used) {
    const std::size_t count = steps(from.k), whole = from.k / kr;
    // Blocks as long as a line of cache: columns often lie a power of two apart, where few lines can stay.
    constexpr std::size_t kBlock = 64 / kr;
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t end = begin + kBlock < count ? begin + kBlock : count;
      for (std::size_t c = 0; c < w; ++c) {
        const std::int8_t *column = from.b + static_cast<std::ptrdiff_t>(j + c) * from.ldb;
        for (std::size_t step = begin; step < end; ++step) {
          T group[kr] = {};
          const std::size_t there = c >= used ? 0 : step < whole ? kr : from.k - step * kr;
          if (there == kr)
            for (std::size_t i = 0; i < kr; ++i) group[i] = column[step * kr + i];
          else
            for (std::size_t i = 0; i < there; ++i) group[i] = column[step * kr + i];
          std::memcpy(to + (step * w + c) * kr, group, sizeof group);
        }
      }
    }
  }

  /// Weights of which the neighbours in n lie side by side, or in any other way. Where kr of them make a word, words are
  /// made at once, since single bytes take as long.
  static void pack_rows(T *to, const GemmWeights &from, std::size_t j, std::size_t w, std::size_t used) {
    using Word = std::uint32_t;
    constexpr bool kWords = kr * sizeof(T) == sizeof(Word);
    const std::int8_t *first = from.b + static_cast<std::ptrdiff_t>(j) * from.ldb;
    for (std::size_t step = 0; step < steps(from.k); ++step, to += w * kr) {
      const std::size_t there = from.k - step * kr < kr ? from.k - step * kr : kr;
      const auto row = [&](std::size_t i) { return first + static_cast<std::ptrdiff_t>(step * kr + i) * from.step; };
      if (kWords && there == kr && used == nr && from.ldb == 1) {
        Word words[nr] = {};
        for (std::size_t i = 0; i < kr; ++i) {
          const std::int8_t *weights = row(i);
          for (std::size_t c = 0; c < nr; ++c)
            words[c] |= static_cast<Word>(static_cast<std::make_unsigned_t<T>>(weights[c])) << (8 * sizeof(T) * i);
        }
        std::memcpy(to, words, sizeof words);
        continue;
      }
      std::memset(to, 0, w * kr * sizeof(T));
      for (std::size_t i = 0; i < there; ++i)
        for (std::size_t c = 0; c < used; ++c) to[c * kr + i] = row(i)[static_cast<std::ptrdiff_t>(c) * from.ldb];
    }
  }

  static std::int32_t column_sum(const GemmWeights &from, std::size_t j) {
    std::int32_t sum = 0;
    if constexpr (shift != 0)
      for (std::size_t k = 0; k < from.k; ++k)
        sum += from.b[static_cast<std::ptrdiff_t>(j) * from.ldb + static_cast<std::ptrdiff_t>(k) * from.step];
    return sum;
  }
};

/// Splits m rows into the fewest tiles of at most `mr` rows, as equal as they come: 49 is 13 + 12 + 12 + 12, not 14 +
/// 14 + 14 + 7. Tile t has rows [begin(t), begin(t + 1)).
class Tiles {
 public:
  Tiles(std::size_t m, std::size_t mr) : count_((m + mr - 1) / mr), rows_(m / count_), larger_(m % count_) {}
  std::size_t count() const { return count_; }
  std::size_t begin(std::size_t t) const { return t * rows_ + (t < larger_ ? t : larger_); }
  std::size_t rows(std::size_t t) const { return rows_ + (t < larger_); }

 private:
  std::size_t count_, rows_, larger_;
};

}  // namespace
}  // namespace qtn::kernels
