// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/elementwise/blocks.hpp"

namespace qtn::kernels::binary_avx2 {
namespace {

struct Avx2 {
  using Bytes = __m256i;

  static Bytes all(std::uint8_t v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static __m256 all(float v) { return _mm256_set1_ps(v); }
};

}  // namespace

void add(const BinaryArgs &args) { add_blocks<Avx2>(args); }
void mul(const BinaryArgs &args) { mul_blocks<Avx2>(args); }

}  // namespace qtn::kernels::binary_avx2
