// SPDX-License-Identifier: Apache-2.0
#include "runtime/distinct_packs.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace qtn::runtime {
namespace {

/// Sums up a few pieces: to read all that is packed would take a good part of the time that packing does.
std::size_t digest_of(const PackedWeights &w) {
  constexpr std::size_t kPieces = 16, kPiece = 64, kFactor = 1000003;
  const std::string_view bytes(reinterpret_cast<const char *>(w.bytes.data()), w.bytes.size());
  std::size_t digest = bytes.size();
  for (std::size_t i = 0; i < kPieces; ++i)
    digest = digest * kFactor + std::hash<std::string_view>{}(bytes.substr(bytes.size() / kPieces * i, kPiece));
  return digest;
}

bool are_equal(const PackedWeights &a, const PackedWeights &b) {
  return a.offsets == b.offsets && a.bytes.size() == b.bytes.size() &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

}  // namespace

PackedPtr DistinctPacks::add(PackedPtr made) {
  if (made->bytes.size() == 0) return made;
  // Many that agree in those pieces alone are compared with the first few.
  constexpr int kMostCompared = 4;
  const std::size_t digest = digest_of(*made);
  const auto [first, last] = by_digest_.equal_range(digest);
  int compared = 0;
  for (auto i = first; i != last && compared < kMostCompared; ++i, ++compared)
    if (i->second == made || are_equal(*i->second, *made)) return i->second;
  return by_digest_.emplace(digest, std::move(made))->second;
}

std::size_t DistinctPacks::bytes() const {
  std::size_t sum = 0;
  for (const auto &[digest, packed] : by_digest_) sum += packed->bytes.size();
  return sum;
}

}  // namespace qtn::runtime
