// SPDX-License-Identifier: Apache-2.0
// What the instruction sets of AArch64 share.
#pragma once

#include "kernels/dot/tiles.hpp"
#include "kernels/neon.hpp"

namespace qtn::kernels {
namespace {

struct Quad {
  using Bytes = uint8x16_t;
  using Sums = int32x4_t;
  using Results = Words;
  using Integers = Signed;
  using Reals = Floats;
  static constexpr std::size_t kBytes = 16;
  static constexpr int kRows = 4, kTogether = 1;

  static Bytes load(const char *p) { return vld1q_u8(reinterpret_cast<const std::uint8_t *>(p)); }
  static Bytes load_part(const char *p, std::size_t count) {
    char padded[kBytes] = {};
    __builtin_memcpy(padded, p, count);
    return load(padded);
  }

  static Sums nothing() { return vdupq_n_s32(0); }

  template <int>
  static Words reduce(const Sums (*sums)[4]) {
    return reinterpret_cast<Words>(vpaddq_s32(vpaddq_s32(sums[0][0], sums[0][1]), vpaddq_s32(sums[0][2], sums[0][3])));
  }
  static Words repeated(Words v) { return v; }
  static Words row(Words results, Index<0>) { return results; }
};

}  // namespace
}  // namespace qtn::kernels
