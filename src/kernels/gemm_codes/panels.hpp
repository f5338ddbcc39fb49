// SPDX-License-Identifier: Apache-2.0
// The packed form of B: panels of nr columns, each
//
//   bias[nr]                             float
//   zero[blocks][nr]                     int8, up to a line of cache; only where there are zero points
//   for each block: scale[nr]            float, divided by 2^(32 - bits)
//                   words[words][nr]     32 / bits elements of a column, the first in the lowest bits
//
// so that one row reads everything in order. An element shifted to the top of its word is q * 2^(32 - bits), which a
// float holds exactly, as it does the difference from a zero point times the same; the product with the scale then
// rounds as float(q - zero) * scale does. Padding is zero.
#pragma once

#include "kernels/gemm_codes/gemm_codes.hpp"

namespace qtn::kernels {
namespace {

/// 2^(32 - bits), by which an element at the top of its word is too large.
constexpr float top_of_word(int bits) { return bits == 4 ? 0x1p28f : 0x1p24f; }

template <std::size_t nr>
class CodesPanels {
 public:
  explicit CodesPanels(const CodesForm &form) : form_(form), per_word_(32 / static_cast<std::size_t>(form.bits)) {}

  std::size_t depth(std::size_t b) const {
    const std::size_t left = form_.k - b * form_.block;
    return left < form_.block ? left : form_.block;
  }

  std::size_t blocks_at() const {
    const std::size_t zeros = form_.zeros ? form_.blocks() * nr : 0;
    return nr * sizeof(float) + (zeros + kLine - 1) / kLine * kLine;
  }

  std::size_t block_bytes(std::size_t depth) const { return nr * sizeof(float) * (1 + words(depth)); }

  std::size_t panel_bytes() const {
    const std::size_t last = form_.k % form_.block;
    return blocks_at() + form_.k / form_.block * block_bytes(form_.block) + (last ? block_bytes(last) : 0);
  }

  std::size_t packed_bytes(std::size_t n) const { return (n + nr - 1) / nr * panel_bytes(); }

  void pack(void *packed, const CodesWeights &from) const {
    char *panel = static_cast<char *>(packed);
    for (std::size_t j = 0; j < from.n; j += nr, panel += panel_bytes()) {
      __builtin_memset(panel, 0, panel_bytes());
      for (std::size_t c = 0; c < nr && j + c < from.n; ++c) pack_column(panel, c, from, j + c);
    }
  }

 private:
  static constexpr std::size_t kLine = 64;

  std::size_t words(std::size_t depth) const { return (depth + per_word_ - 1) / per_word_; }

  void pack_column(char *panel, std::size_t c, const CodesWeights &from, std::size_t j) const {
    const std::size_t blocks = form_.blocks();
    if (from.bias) reinterpret_cast<float *>(panel)[c] = from.bias[j];
    auto *zeros = reinterpret_cast<std::int8_t *>(panel + nr * sizeof(float));
    char *block = panel + blocks_at();
    const std::int8_t *q = from.q + static_cast<std::ptrdiff_t>(j) * from.column;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (form_.zeros) zeros[b * nr + c] = from.zero[j * blocks + b];
      reinterpret_cast<float *>(block)[c] = from.scale[j * blocks + b] / top_of_word(form_.bits);
      auto *words = reinterpret_cast<std::uint32_t *>(block) + nr + c;
      for (std::size_t i = 0; i < depth(b); ++i, q += from.row)
        words[i / per_word_ * nr] |= (static_cast<std::uint32_t>(*q) & ((1u << form_.bits) - 1))
                                     << i % per_word_ * static_cast<std::size_t>(form_.bits);
      block += block_bytes(depth(b));
    }
  }

  CodesForm form_;
  std::size_t per_word_;
};

}  // namespace
}  // namespace qtn::kernels
