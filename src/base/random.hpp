// SPDX-License-Identifier: Apache-2.0
// Random numbers as a function of seed, stream and index, so that training that goes on from a checkpoint draws what it
// would have drawn, on any number of threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace qtn {

using RandomWords = std::array<std::uint32_t, 4>;

/// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011.
constexpr RandomWords philox(RandomWords counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// Each use (a node's dropout at a step, the order of an epoch) has a stream of its own.
class Random {
 public:
  constexpr Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  /// Words 4 * index to 4 * index + 3 of the stream.
  constexpr RandomWords block(std::uint64_t index) const {
    return philox({low(index), high(index), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  }
  constexpr std::uint32_t word(std::uint64_t index) const { return block(index / 4)[index % 4]; }

  /// A multiple of 2^-24 in [0, 1).
  constexpr float uniform(std::uint64_t index) const { return static_cast<float>(word(index) >> 8) * 0x1p-24f; }

  /// Every order is as likely as any other, except for a share of items.size() / 2^32.
  template <class T>
  constexpr void shuffle(std::span<T> items) const {
    for (std::uint64_t left = items.size(); left > 1; --left)
      std::swap(items[left - 1], items[static_cast<std::size_t>(word(left) * left >> 32)]);
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
  static constexpr std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

  std::uint64_t seed_, stream_;
};

}  // namespace qtn
