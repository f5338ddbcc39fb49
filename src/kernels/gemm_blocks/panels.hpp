// SPDX-License-Identifier: Apache-2.0
// The packed form of weights: WordPanels of unsigned elements, 2^(bits - 1) further up, which is the zero point where
// there are none; with them, the zero point, uint8, is as much more. Byte j of a word of 4 bits has element j in its low
// half and element 4 + j in its high one, each half then being what one instruction multiplies.
#pragma once

#include "kernels/gemm_blocks/gemm_blocks.hpp"
#include "kernels/word_panels.hpp"

namespace qtn::kernels {
namespace {

/// By how much packed elements are larger than their integers.
constexpr int up_by(int bits) { return 1 << (bits - 1); }

template <std::size_t nr>
class BlocksPanels : public WordPanels<nr, BlocksForm> {
  using Base = WordPanels<nr, BlocksForm>;
  using Base::form_, Base::per_word_;

 public:
  using Base::Base, Base::blocks_at, Base::block_bytes, Base::zeros_at;

  void pack(void *packed, const BlocksWeights &from) const {
    Base::each_column(packed, from.n,
                      [&](char *panel, std::size_t c, std::size_t j) { pack_column(panel, c, from, j); });
  }

 private:
  void pack_column(char *panel, std::size_t c, const BlocksWeights &from, std::size_t j) const {
    const std::size_t blocks = form_.blocks();
    if (from.bias) reinterpret_cast<float *>(panel)[c] = from.bias[j];
    auto *offsets = reinterpret_cast<std::uint8_t *>(panel + zeros_at());
    char *block = panel + blocks_at();
    const std::int8_t *q = from.q + j * form_.k;
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t depth = form_.depth(b);
      if (form_.zeros) offsets[b * nr + c] = static_cast<std::uint8_t>(up_by(form_.bits) + from.zero[j * blocks + b]);
      reinterpret_cast<float *>(block)[c] = from.scale[j * blocks + b];
      Base::each_word(reinterpret_cast<std::uint32_t *>(block) + nr + c, q, depth,
                      static_cast<std::int8_t>(-up_by(form_.bits)),
                      [&](std::uint64_t bytes) { return form_.bits == 4 ? halves_up(bytes) : bytes_up(bytes); });
      q += depth;
      block += block_bytes(depth);
    }
  }

  static std::uint32_t bytes_up(std::uint64_t bytes) { return static_cast<std::uint32_t>(bytes) ^ 0x80808080; }

  /// The first four elements are the low halves of bytes.
  static std::uint32_t halves_up(std::uint64_t bytes) {
    bytes = (bytes ^ 0x0808080808080808) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<std::uint32_t>(bytes | bytes >> 28);
  }
};

}  // namespace
}  // namespace qtn::kernels
