// SPDX-License-Identifier: Apache-2.0
// For tiles that read A where it lies.
#pragma once

#include "kernels/gemm/blocks.hpp"

namespace qtn::kernels {
namespace {

template <class V>
struct InPlace {
  /// A block of A stays in L1 next to the panel; when B itself does not fit L2, A's blocks grow so that B is read less
  /// often, and no small one is left over.
  static std::size_t block_tiles(const GemmArgs &args) {
    constexpr std::size_t kSmallBlock = 32 << 10, kLargeBlock = 384 << 10, kLargeWeights = 512 << 10;
    const std::size_t k = args.part ? args.part->length : args.k, tile = V::kMr * (k + 1);
    if (args.n * k <= kLargeWeights) return kSmallBlock / tile + 1;
    const std::size_t most = kLargeBlock / tile + 1, tiles = Tiles(args.m, V::kMr).count();
    const std::size_t blocks = (tiles + most / 2) / most;
    return blocks > 1 ? (tiles + blocks - 1) / blocks : tiles;
  }

  static RowBlock prepare(const GemmArgs &args, std::size_t row, std::size_t) {
    return {args.a + static_cast<std::ptrdiff_t>(row) * args.lda, args.lda};
  }
};

}  // namespace
}  // namespace qtn::kernels
