// SPDX-License-Identifier: Apache-2.0
// What the instruction sets of AArch64 share.
#pragma once

#include "kernels/depthwise/strips.hpp"
#include "kernels/neon.hpp"

namespace qtn::kernels {
namespace {

class Quad {
 public:
  using Vector = int32x4_t;
  static constexpr int kLanes = 1, kOuts = 4;

  Quad(const QuantizedRange &range, std::size_t used) : saturate_(range), used_(used) {}

  static int32x4_t load(const void *p) { return vld1q_s32(static_cast<const std::int32_t *>(p)); }
  static int32x4_t load_once(const void *p) { return load(p); }
  static void store(void *p, int32x4_t v) { vst1q_s32(static_cast<std::int32_t *>(p), v); }
  static int32x4_t fill(std::uint8_t byte) { return vreinterpretq_s32_u8(vdupq_n_u8(byte)); }
  static int32x4_t gathered(const std::uint8_t *const (&from)[1]) { return load(from[0]); }

  template <int p, int pixels>
  [[gnu::always_inline]] void put(std::uint8_t *y, int32x4_t v) const {
    if (used_ == 16) return store(y, v);
    char bytes[16];
    store(bytes, v);
    __builtin_memcpy(y, bytes, used_);
  }

  struct Words {
    uint8x16_t lo, hi;

    Words() = default;
    Words(int32x4_t a, int32x4_t b)
        : lo(vzip1q_u8(vreinterpretq_u8_s32(a), vreinterpretq_u8_s32(b))),
          hi(vzip2q_u8(vreinterpretq_u8_s32(a), vreinterpretq_u8_s32(b))) {}
  };

  [[gnu::always_inline]] int32x4_t requantized(const int32x4_t (&acc)[4], const char *multipliers) const {
    const auto q = [&](int v) {
      return saturate_.round(scaled(acc[v], vld1q_f32(reinterpret_cast<const float *>(multipliers) + 4 * v)));
    };
    return vreinterpretq_s32_u8(saturate_.bytes(saturate_.words(q(0), q(1)), saturate_.words(q(2), q(3))));
  }

 private:
  Saturate saturate_;
  std::size_t used_;
};

/// Four taps of a channel are one dword.
class FourTaps : public Quad {
 public:
  using Weight = std::int8_t;
  static constexpr int kTaps = 4;

  using Quad::Quad;

  template <int v>
  static int32x4_t dwords(const Words *w) {
    const auto half = [](const Words &words) { return vreinterpretq_u16_u8(v < 2 ? words.lo : words.hi); };
    return vreinterpretq_s32_u16(v % 2 == 0 ? vzip1q_u16(half(w[0]), half(w[1])) : vzip2q_u16(half(w[0]), half(w[1])));
  }
};

}  // namespace
}  // namespace qtn::kernels
