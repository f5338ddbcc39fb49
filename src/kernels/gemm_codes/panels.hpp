// SPDX-License-Identifier: Apache-2.0
// The packed form of B: WordPanels, of which the first element of a word has its lowest bits, scales are divided by
// 2^(32 - bits), and zero points are int8. An element shifted to the top of its word is q * 2^(32 - bits), which a float
// holds exactly, as it does the difference from a zero point times the same; the product with the scale then rounds as
// float(q - zero) * scale does.
#pragma once

#include "kernels/gemm_codes/gemm_codes.hpp"
#include "kernels/word_panels.hpp"

namespace qtn::kernels {
namespace {

/// 2^(32 - bits), by which an element at the top of its word is too large.
constexpr float top_of_word(int bits) { return bits == 4 ? 0x1p28f : 0x1p24f; }

template <std::size_t nr>
class CodesPanels : public WordPanels<nr, CodesForm> {
  using Base = WordPanels<nr, CodesForm>;
  using Base::form_, Base::per_word_;

 public:
  using Base::Base, Base::blocks_at, Base::block_bytes, Base::depth, Base::zeros_at;

  void pack(void *packed, const CodesWeights &from) const {
    Base::each_column(packed, from.n,
                      [&](char *panel, std::size_t c, std::size_t j) { pack_column(panel, c, from, j); });
  }

 private:
  void pack_column(char *panel, std::size_t c, const CodesWeights &from, std::size_t j) const {
    const std::size_t blocks = form_.blocks();
    if (from.bias) reinterpret_cast<float *>(panel)[c] = from.bias[j];
    auto *zeros = reinterpret_cast<std::int8_t *>(panel + zeros_at());
    char *block = panel + blocks_at();
    const std::int8_t *q = from.q + j * form_.k;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (form_.zeros) zeros[b * nr + c] = from.zero[j * blocks + b];
      reinterpret_cast<float *>(block)[c] = from.scale[j * blocks + b] / top_of_word(form_.bits);
      Base::each_word(reinterpret_cast<std::uint32_t *>(block) + nr + c, q, depth(b), 0,
                      [&](std::uint64_t bytes) { return form_.bits == 4 ? low_halves(bytes) : low_word(bytes); });
      q += depth(b);
      block += block_bytes(depth(b));
    }
  }

  static std::uint32_t low_word(std::uint64_t bytes) { return static_cast<std::uint32_t>(bytes); }

  /// The lower four bits of all bytes.
  static std::uint32_t low_halves(std::uint64_t bytes) {
    bytes &= 0x0f0f0f0f0f0f0f0f;
    bytes = (bytes | bytes >> 4) & 0x00ff00ff00ff00ff;
    bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffff;
    return static_cast<std::uint32_t>(bytes | bytes >> 16);
  }
};

}  // namespace
}  // namespace qtn::kernels
