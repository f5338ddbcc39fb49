// SPDX-License-Identifier: Apache-2.0
// Panels of columns of weights of few bits, as words of 32 bits: what gemm_codes and gemm_blocks share of them. Each is
//
//   bias[nr]                             float
//   zero[blocks][nr]                     a byte each, up to a line of cache; only where there are zero points
//   for each block: scale[nr]            float
//                   words[words][nr]     32 / bits elements of a column
//
// so that one row reads everything in order. Padding is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace qtn::kernels {
namespace {

/// `Form` has k, block, bits, zeros and blocks().
template <std::size_t nr, class Form>
class WordPanels {
 public:
  explicit WordPanels(const Form &form) : form_(form), per_word_(32 / static_cast<std::size_t>(form.bits)) {}

  static constexpr std::size_t zeros_at() { return nr * sizeof(float); }

  std::size_t blocks_at() const {
    const std::size_t zeros = form_.zeros ? form_.blocks() * nr : 0;
    return zeros_at() + (zeros + kLine - 1) / kLine * kLine;
  }

  std::size_t depth(std::size_t b) const {
    const std::size_t left = form_.k - b * form_.block;
    return left < form_.block ? left : form_.block;
  }
  std::size_t words(std::size_t depth) const { return (depth + per_word_ - 1) / per_word_; }
  std::size_t block_bytes(std::size_t depth) const { return nr * sizeof(float) * (1 + words(depth)); }

  std::size_t panel_bytes() const {
    const std::size_t last = form_.k % form_.block;
    return blocks_at() + form_.k / form_.block * block_bytes(form_.block) + (last ? block_bytes(last) : 0);
  }

  /// How many bytes ahead of what it reads a loop over `count` panels side by side fetches: as far as the same place of
  /// the panels that come next, unless these are long. By itself a CPU would find out where they begin too late.
  std::size_t ahead(std::size_t count) const {
    constexpr std::size_t kFar = 2 << 10, kShort = 64 << 10;
    const std::size_t next = count * panel_bytes();
    return next <= kShort ? next : kFar;
  }

  std::size_t packed_bytes(std::size_t n) const { return (n + nr - 1) / nr * panel_bytes(); }

 protected:
  /// Clears all panels and calls pack(panel, column of it, column) for each of n columns.
  template <class Pack>
  void each_column(void *packed, std::size_t n, const Pack &pack) const {
    char *panel = static_cast<char *>(packed);
    for (std::size_t j = 0; j < n; j += nr, panel += panel_bytes()) {
      std::memset(panel, 0, panel_bytes());
      for (std::size_t c = 0; c < nr && j + c < n; ++c) pack(panel, c, j + c);
    }
  }

  /// Fills in a column of the words of a block by word(its elements, the first in the lowest byte). What is missing of the
  /// last one is `missing`.
  template <class Word>
  void each_word(std::uint32_t *to, const std::int8_t *q, std::size_t depth, std::int8_t missing,
                 const Word &word) const {
    for (; depth >= per_word_; depth -= per_word_, q += per_word_, to += nr) {
      std::uint64_t elements = 0;
      per_word_ == 8 ? std::memcpy(&elements, q, 8) : std::memcpy(&elements, q, 4);
      *to = word(elements);
    }
    if (depth == 0) return;
    std::int8_t last[8];
    std::memset(last, missing, sizeof last);
    std::memcpy(last, q, depth);
    std::uint64_t elements;
    std::memcpy(&elements, last, sizeof elements);
    *to = word(elements);
  }

  Form form_;
  std::size_t per_word_;

 private:
  static constexpr std::size_t kLine = 64;
};

}  // namespace
}  // namespace qtn::kernels
