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
      auto *to = reinterpret_cast<std::uint32_t *>(block) + nr + c;
      for (std::size_t i = 0; i < depth; ++i)
        to[i / per_word_ * nr] |= static_cast<std::uint32_t>(*q++ + up_by(form_.bits)) << bit_of(i % per_word_);
      block += block_bytes(depth);
    }
  }

  std::size_t bit_of(std::size_t i) const { return form_.bits == 8 ? 8 * i : i < 4 ? 8 * i : 8 * (i - 4) + 4; }
};

}  // namespace
}  // namespace qtn::kernels
