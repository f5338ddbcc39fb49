// SPDX-License-Identifier: Apache-2.0
// Exact products without VNNI: vpmaddwd over 16-bit operands, not the saturating vpmaddubsw, and no slower for it. B is
// packed as int16; a block of A is widened once into scratch and read for every panel. Images come with 16 bits.
#pragma once

#include "kernels/gemm/blocks.hpp"

namespace qtn::kernels {
namespace {

/// `V` adds to these: kWidth, elements that widen(to, from) takes at once.
template <class V>
struct Widened {
  using Element = std::int16_t;
  static constexpr int kStep = 2, kInFlight = 4, kTogether = 1;

  static std::size_t row_bytes(std::size_t k) { return (k + V::kWidth - 1) / V::kWidth * V::kWidth * 2; }

  static std::size_t block_tiles_of(std::size_t k) {
    constexpr std::size_t kBlockBytes = 192 << 10;  // in L2
    return kBlockBytes / (V::kMr * (row_bytes(k) + 1)) + 1;
  }

  static std::size_t block_tiles(const GemmArgs &args) { return block_tiles_of(args.k); }

  static std::size_t scratch_bytes(std::size_t m, std::size_t k) {
    const std::size_t tiles = (m + V::kMr - 1) / V::kMr, most = block_tiles_of(k);
    return (tiles < most ? tiles : most) * V::kMr * row_bytes(k);
  }

  static RowBlock prepare(const GemmArgs &args, std::size_t row, std::size_t rows) {
    const std::ptrdiff_t lda = static_cast<std::ptrdiff_t>(row_bytes(args.k));
    char *to = static_cast<char *>(args.scratch);
    const std::uint8_t *from = args.a + static_cast<std::ptrdiff_t>(row) * args.lda;
    for (std::size_t i = 0; i < rows; ++i, to += lda, from += args.lda)
      for (std::size_t k = 0; k < args.k; k += V::kWidth) V::widen(to + 2 * k, from + k);
    return {static_cast<const std::uint8_t *>(args.scratch), lda};
  }
};

}  // namespace
}  // namespace qtn::kernels
