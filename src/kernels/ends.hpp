// SPDX-License-Identifier: Apache-2.0
// Rows of bytes that are shorter than a vector, where there are no masks: a vector holds the first and the last of them, some
// maybe twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

constexpr std::size_t kFewestOfEnds = sizeof(std::uint32_t);  ///< of bytes

/// The first and the last `count` numbers of type T of so many bytes, side by side in V::Bytes.
template <class V, class T, int count>
struct Ends {
  using Bytes = typename V::Bytes;
  using Numbers [[gnu::vector_size(sizeof(Bytes))]] = T;
  static constexpr std::size_t kBytes = count * sizeof(T);

  [[gnu::always_inline]] static Bytes read(const std::uint8_t *from, std::size_t bytes) {
    T ends[2 * count];
    __builtin_memcpy(ends, from, kBytes);
    __builtin_memcpy(ends + count, from + bytes - kBytes, kBytes);
    Numbers v{};
    unroll<2 * count>([&](auto i) { v[std::size_t{i}] = ends[i]; });
    return (Bytes)v;
  }
  [[gnu::always_inline]] static void write(std::uint8_t *to, std::size_t bytes, Bytes results) {
    const auto v = (Numbers)results;
    T ends[2 * count];
    unroll<2 * count>([&](auto i) { ends[i] = v[std::size_t{i}]; });
    __builtin_memcpy(to, ends, kBytes);
    __builtin_memcpy(to + bytes - kBytes, ends + count, kBytes);
  }
};

}  // namespace
}  // namespace qtn::kernels
