// SPDX-License-Identifier: Apache-2.0
// The order in which products of floats are added up: each block of kSumBlock elements of k is a chain of fused
// multiply-adds in the order of k, the first one from the bias on, the others from zero on; then the blocks are added up
// in their order. Errors grow more slowly with k than those of one chain, and hardly any time is spent on it.
#pragma once

#include <cstddef>

#include "kernels/unroll.hpp"

namespace qtn::kernels {

inline constexpr std::size_t kSumBlock = 128;

namespace {

/// How many elements from k on, of `count`, are in the block of k.
constexpr std::size_t in_sum_block(std::size_t k, std::size_t count) {
  const std::size_t left = kSumBlock - k % kSumBlock;
  return count < left ? count : left;
}

[[gnu::noinline]] inline void fill_with_negative_zeros(float *to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = -0.0f;
}

/// Sums of rows times vectors of columns: V::Vector.
template <class V, int rows, int vectors>
struct TileSums {
  typename V::Vector v[rows][vectors];

  [[gnu::always_inline]] void add(const TileSums &other) {
    unroll<rows>([&](auto r) { unroll<vectors>([&](auto j) { v[r][j] = v[r][j] + other.v[r][j]; }); });
  }
  /// Adds itself to others, and becomes zeros.
  [[gnu::always_inline]] void move_to(TileSums &sums) {
    unroll<rows>([&](auto r) {
      unroll<vectors>([&](auto j) {
        sums.v[r][j] = v[r][j] + sums.v[r][j];
        v[r][j] = typename V::Vector{};
      });
    });
  }
};

/// What the blocks before the one that is in accumulators have come to. `A`, of floats, has what TileSums has.
template <class A>
class EarlierBlocks {
 public:
  /// For sums that end before this element of k.
  explicit EarlierBlocks(std::size_t end) : some_(end > kSumBlock) {
    __asm__("" : "=m"(sums_));  // The compiler cannot see that nothing reads them otherwise.
    // Negative zeros leave every number as it is.
    if (some_) fill_with_negative_zeros(reinterpret_cast<float *>(&sums_), sizeof sums_ / sizeof(float));
  }

  /// Before element k, and those in its block, are added to `acc`.
  [[gnu::always_inline]] void enter(std::size_t k, A &acc) {
    if (k / kSumBlock == block_) return;
    acc.move_to(sums_);
    block_ = k / kSumBlock;
  }

  /// Makes `acc` the sum of all blocks.
  [[gnu::always_inline]] void end(A &acc) const {
    if (some_) acc.add(sums_);
  }

 private:
  A sums_;
  std::size_t block_ = 0;
  bool some_;
};

/// The sum of one element.
class BlockedSum {
 public:
  explicit BlockedSum(float begin) : chain_(begin) {}
  void add(std::size_t k, float a, float b) {
    if (k / kSumBlock != block_) {
      earlier_ += chain_;
      chain_ = 0;
      block_ = k / kSumBlock;
    }
    chain_ = __builtin_fmaf(a, b, chain_);
  }
  float value() const { return earlier_ + chain_; }

 private:
  float earlier_ = -0.0f, chain_;
  std::size_t block_ = 0;
};

}  // namespace
}  // namespace qtn::kernels
