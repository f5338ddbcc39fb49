// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cache_rows.hpp"

#include <algorithm>
#include <cstring>

#include "base/rounding.hpp"

namespace qtn::ops {
namespace {

constexpr std::int64_t kPart = 64;   // features at a time, with a scale each
constexpr std::int32_t kMiddle = 8;  // of the codes of 4 bits

}  // namespace

std::size_t CacheRows::bytes() const {
  const auto count = static_cast<std::size_t>(features);
  return bits == 0 ? count * sizeof(float) : bits == 8 ? count : count / 2;
}

/// body(first, count, scales) for features [first, first + count)
template <class Body>
void CacheRows::for_parts(std::int64_t head, const Body &body) const {
  const float *given = scales->as<const float>();
  const bool one = scales->count() == 1;
  float scale[kPart];
  if (one) std::fill_n(scale, kPart, *given);
  for (std::int64_t first = 0; first < features; first += kPart) {
    const std::int64_t count = std::min(kPart, features - first);
    if (!one) std::copy_n(given + head * features + first, count, scale);
    body(first, count, scale);
  }
}

void CacheRows::write(std::int64_t head, const float *from, std::byte *to) const {
  if (bits == 0) return void(std::memcpy(to, from, bytes()));
  const std::int32_t most = bits == 8 ? 127 : kMiddle - 1;
  for_parts(head, [&](std::int64_t first, std::int64_t count, const float *scale) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = first + i;
      const std::int32_t q = to_grid(from[at], Rounding::division, scale[i], 0, -most - 1, most), code = q + kMiddle;
      if (bits == 8)
        to[at] = static_cast<std::byte>(q);
      else
        to[at / 2] = at % 2 == 0 ? static_cast<std::byte>(code) : to[at / 2] | static_cast<std::byte>(code << 4);
    }
  });
}

void CacheRows::read(std::int64_t head, const std::byte *from, float *to) const {
  if (bits == 0) return void(std::memcpy(to, from, bytes()));
  for_parts(head, [&](std::int64_t first, std::int64_t count, const float *scale) {
    std::int8_t codes[kPart];
    if (bits == 8) std::memcpy(codes, from + first, static_cast<std::size_t>(count));
    for (std::int64_t j = 0; bits == 4 && j < count / 2; ++j) {
      const auto pair = std::to_integer<std::int32_t>(from[first / 2 + j]);
      codes[2 * j] = static_cast<std::int8_t>((pair & 15) - kMiddle);
      codes[2 * j + 1] = static_cast<std::int8_t>((pair >> 4) - kMiddle);
    }
    for (std::int64_t i = 0; i < count; ++i) to[first + i] = static_cast<float>(codes[i]) * scale[i];
  });
}

}  // namespace qtn::ops
