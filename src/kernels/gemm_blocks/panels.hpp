// SPDX-License-Identifier: Apache-2.0
// The packed form of weights: panels of nr columns, each
//
//   bias[nr]                             float
//   offset[blocks][nr]                   uint8, up to a line of cache; only where there are zero points
//   for each block: scale[nr]            float
//                   words[words][nr]     32 / bits elements of a column
//
// so that one row reads everything in order. Elements are unsigned, 2^(bits - 1) further up, which is the offset where
// there are no zero points; with them, the offset is as much more. Byte j of a word of 4 bits has element j in its low
// half and element 4 + j in its high one, each half then being what one instruction multiplies. Padding is zero.
#pragma once

#include "kernels/gemm_blocks/gemm_blocks.hpp"

namespace qtn::kernels {
namespace {

/// By how much packed elements are larger than their integers.
constexpr int up_by(int bits) { return 1 << (bits - 1); }

template <std::size_t nr>
class BlocksPanels {
 public:
  explicit BlocksPanels(const BlocksForm &form) : form_(form), per_word_(32 / static_cast<std::size_t>(form.bits)) {}

  static constexpr std::size_t offsets_at() { return nr * sizeof(float); }

  std::size_t blocks_at() const {
    const std::size_t offsets = form_.zeros ? form_.blocks() * nr : 0;
    return offsets_at() + (offsets + kLine - 1) / kLine * kLine;
  }

  std::size_t words(std::size_t depth) const { return (depth + per_word_ - 1) / per_word_; }
  std::size_t block_bytes(std::size_t depth) const { return nr * sizeof(float) * (1 + words(depth)); }

  std::size_t panel_bytes() const {
    const std::size_t last = form_.k % form_.block;
    return blocks_at() + form_.k / form_.block * block_bytes(form_.block) + (last ? block_bytes(last) : 0);
  }

  std::size_t packed_bytes(std::size_t n) const { return (n + nr - 1) / nr * panel_bytes(); }

  void pack(void *packed, const BlocksWeights &from) const {
    char *panel = static_cast<char *>(packed);
    for (std::size_t j = 0; j < from.n; j += nr, panel += panel_bytes()) {
      __builtin_memset(panel, 0, panel_bytes());
      for (std::size_t c = 0; c < nr && j + c < from.n; ++c) pack_column(panel, c, from, j + c);
    }
  }

 private:
  static constexpr std::size_t kLine = 64;

  void pack_column(char *panel, std::size_t c, const BlocksWeights &from, std::size_t j) const {
    const std::size_t blocks = form_.blocks();
    if (from.bias) reinterpret_cast<float *>(panel)[c] = from.bias[j];
    auto *offsets = reinterpret_cast<std::uint8_t *>(panel + offsets_at());
    char *block = panel + blocks_at();
    const std::int8_t *q = from.q + j * form_.k;
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t depth = form_.depth(b);
      if (form_.zeros) offsets[b * nr + c] = static_cast<std::uint8_t>(up_by(form_.bits) + from.zero[j * blocks + b]);
      reinterpret_cast<float *>(block)[c] = from.scale[j * blocks + b];
      auto *to = reinterpret_cast<std::uint32_t *>(block) + nr + c;
      for (std::size_t i = 0; i < depth; ++i)
        to[i / per_word_ * nr] |= static_cast<std::uint32_t>(*q++ + up_by(form_.bits)) << bit_of(i % per_word_);
      block += block_bytes(depth);
    }
  }

  std::size_t bit_of(std::size_t i) const { return form_.bits == 8 ? 8 * i : i < 4 ? 8 * i : 8 * (i - 4) + 4; }

  BlocksForm form_;
  std::size_t per_word_;
};

}  // namespace
}  // namespace qtn::kernels
