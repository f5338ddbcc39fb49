// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon.hpp"

#include "kernels/elementwise/blocks.hpp"

namespace qtn::kernels::binary_neon {
namespace {

struct Neon {
  using Bytes = uint8x16_t;

  static Bytes all(std::uint8_t v) { return vdupq_n_u8(v); }
  static float32x4_t all(float v) { return vdupq_n_f32(v); }
};

}  // namespace

void add(const BinaryArgs &args) { add_blocks<Neon>(args); }
void mul(const BinaryArgs &args) { mul_blocks<Neon>(args); }

}  // namespace qtn::kernels::binary_neon
