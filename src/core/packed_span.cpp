// SPDX-License-Identifier: Apache-2.0
// Elements that share bytes, one by one and in runs: weights of millions are unpacked whenever a session is made.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/codes.hpp"

namespace qtn {
namespace {

struct Lane {
  std::int64_t byte;
  unsigned shift, mask;
};

Lane lane_of(const PackedSpan &span, std::int64_t i) {
  const unsigned bits = dtype_bits(span.dtype), per_byte = 8 / bits;
  const std::int64_t at = span.lane + i;
  const auto within = static_cast<unsigned>(at & (per_byte - 1));
  return {(at - within) / per_byte, within * bits, (1u << bits) - 1};
}

/// The elements of a byte as the bytes of a word, the first one in the lowest.
template <unsigned bits>
using Word = std::conditional_t<bits == 4, std::uint16_t, std::uint32_t>;

template <unsigned bits>
void unpack(const std::uint8_t *from, std::int64_t count, bool is_signed, std::int8_t *to) {
  // The highest bit of a signed element is repeated in those above it.
  constexpr std::uint32_t kHighest = bits == 4 ? 0x0808 : 0x02020202;
  const std::uint32_t signs = is_signed ? kHighest : 0, above = 256 - (1u << bits), extended = above >> (bits - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t word = from[i];
    if constexpr (bits == 4)
      word = (word | word << 4) & 0x0f0f;
    else
      word = (word | word << 12) & 0x000f000f, word = (word | word << 6) & 0x03030303;
    const auto elements = static_cast<Word<bits>>(word | (word & signs) * extended);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof elements), &elements, sizeof elements);
  }
}

template <unsigned bits>
void pack(const std::int8_t *from, std::int64_t count, std::uint8_t *to) {
  for (std::int64_t i = 0; i < count; ++i) {
    Word<bits> elements;
    std::memcpy(&elements, from + i * static_cast<std::int64_t>(sizeof elements), sizeof elements);
    std::uint32_t word = elements;
    if constexpr (bits == 4)
      word = (word & 0x000f) | (word & 0x0f00) >> 4;
    else
      word &= 0x03030303, word |= word >> 6, word |= word >> 12;
    to[i] = static_cast<std::uint8_t>(word);
  }
}

/// How many elements of a run lie before its first whole byte, and where its whole bytes are.
struct Run {
  Run(const PackedSpan &span, std::int64_t first, std::int64_t count) {
    const std::int64_t per_byte = 8 / dtype_bits(span.dtype), inside = (span.lane + first) & (per_byte - 1);
    head = std::min(count, inside == 0 ? 0 : per_byte - inside);
    bytes = (count - head) / per_byte;
    begin = (span.lane + first + head) / per_byte;
    rest = head + bytes * per_byte;
  }

  std::int64_t head, bytes, begin, rest;
};

}  // namespace

std::int8_t PackedSpan::load(std::int64_t i) const {
  const Lane at = lane_of(*this, i);
  const unsigned value = bytes[at.byte] >> at.shift & at.mask;
  const bool negative = plain_dtype(dtype) == QTN_INT8 && value > at.mask >> 1;
  return static_cast<std::int8_t>(negative ? static_cast<int>(value) - static_cast<int>(at.mask) - 1
                                           : static_cast<int>(value));
}

void PackedSpan::store(std::int64_t i, std::int64_t value) const {
  const Lane at = lane_of(*this, i);
  const unsigned kept = bytes[at.byte] & ~(at.mask << at.shift);
  bytes[at.byte] = static_cast<std::uint8_t>(kept | (static_cast<unsigned>(value) & at.mask) << at.shift);
}

void PackedSpan::load_run(std::int64_t first, std::int64_t count, std::int8_t *to) const {
  const Run run(*this, first, count);
  for (std::int64_t i = 0; i < run.head; ++i) to[i] = load(first + i);
  (dtype_bits(dtype) == 4 ? unpack<4> : unpack<2>)(bytes + run.begin, run.bytes, plain_dtype(dtype) == QTN_INT8,
                                                   to + run.head);
  for (std::int64_t i = run.rest; i < count; ++i) to[i] = load(first + i);
}

void PackedSpan::store_run(std::int64_t first, std::int64_t count, const std::int8_t *from) const {
  const Run run(*this, first, count);
  for (std::int64_t i = 0; i < run.head; ++i) store(first + i, from[i]);
  (dtype_bits(dtype) == 4 ? pack<4> : pack<2>)(from + run.head, run.bytes, bytes + run.begin);
  for (std::int64_t i = run.rest; i < count; ++i) store(first + i, from[i]);
}

}  // namespace qtn
