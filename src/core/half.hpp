// SPDX-License-Identifier: Apache-2.0
// The floats of 16 bits, rounded to nearest, ties to even, without branches, so that loops over them become vectors.
#pragma once

#include <bit>
#include <cstdint>

namespace qtn {

inline constexpr std::uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000, kQuietNaN = 0x7FC00000;

/// NaN has the sign of its code and no payload.
inline float decode_half(std::uint16_t code) {
  constexpr std::uint32_t kRebias = (127 - 15) << 23, kFirstNormal = 0x400, kHalfInfinity = 0x7C00;
  const std::uint32_t magnitude = code & 0x7FFFu, sign = std::uint32_t{code & 0x8000u} << 16;
  const std::uint32_t below = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  std::uint32_t bits = magnitude < kFirstNormal ? below : (magnitude << 13) + kRebias;
  bits = magnitude == kHalfInfinity ? kInfinity : magnitude > kHalfInfinity ? kQuietNaN : bits;
  return std::bit_cast<float>(sign | bits);
}

inline std::uint16_t encode_half(float value) {
  constexpr std::uint32_t kRebias = (127 - 15) << 23, kLeastNormal = 0x38800000, kTooLarge = 0x47800000,
                          kHalfBits = 0x3F000000;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & kMagnitude,
                      sign = bits >> 16 & 0x8000;
  const std::uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - kRebias) >> 13;
  // The last place of a number that begins with 0.5 is that of the subnormals.
  const std::uint32_t below = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - kHalfBits;
  std::uint32_t code = magnitude < kLeastNormal ? below : normal;
  code = magnitude > kInfinity ? 0x7E00 : magnitude >= kTooLarge ? 0x7C00 : code;
  return static_cast<std::uint16_t>(sign | code);
}

inline float decode_bfloat16(std::uint16_t code) { return std::bit_cast<float>(std::uint32_t{code} << 16); }

inline std::uint16_t encode_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, nan = (bits >> 16 & 0x8000) | kQuietNaN >> 16;
  return static_cast<std::uint16_t>((bits & kMagnitude) > kInfinity ? nan : rounded);
}

}  // namespace qtn
