// SPDX-License-Identifier: Apache-2.0
#include "changes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "fuzzing.hpp"

namespace fuzz {
namespace {

constexpr std::size_t kLongestPart = 64;

/// Numbers at which sizes, types and counts turn over.
constexpr std::int64_t kEdges[] = {0,   1,    -1,    2,     16,    127,     128,        255,        256,
                                   512, 1000, 32767, 32768, 65535, 1 << 24, 2147483647, 2147483648, INT64_MAX};

std::span<const std::uint8_t> part_of(const Content &file, Dice &dice) {
  const std::size_t at = dice.next() % file.size();
  const std::size_t size = 1 + dice.next() % kLongestPart;
  return std::span(file).subspan(at, std::min(size, file.size() - at));
}

/// Bytes of which each becomes another: what comes behind them stays where it was, so that lengths in the file hold.
void write_over(Content &file, const Content &other, Dice &dice) {
  const std::size_t at = dice.next() % file.size();
  std::uint8_t &byte = file[at];
  switch (dice.next() % 6) {
    case 0:
      byte ^= static_cast<std::uint8_t>(1U << dice.next() % 8);
      break;
    case 1:
      byte = static_cast<std::uint8_t>(dice.next());
      break;
    case 2:
      byte = static_cast<std::uint8_t>(byte + dice.next() % 33 - 16);
      break;
    case 3: {
      const std::int64_t edge = kEdges[dice.next() % std::size(kEdges)];
      const std::size_t width = std::size_t{1} << dice.next() % 4;
      std::memcpy(&byte, &edge, std::min(width, file.size() - at));
      break;
    }
    default: {  // a part of this file or of another
      const Content from = dice.next() % 2 == 0 ? file : other;
      const auto part = part_of(from, dice);
      std::copy_n(part.begin(), std::min(part.size(), file.size() - at), &byte);
    }
  }
}

void insert_or_erase(Content &file, const Content &other, Dice &dice) {
  const auto at = file.begin() + static_cast<std::ptrdiff_t>(dice.next() % file.size());
  switch (dice.next() % 3) {
    case 0:
      file.erase(at, at + std::min<std::ptrdiff_t>(1 + dice.next() % kLongestPart, file.end() - at));
      break;
    case 1:
      file.insert(at, static_cast<std::uint8_t>(dice.next()));
      break;
    default: {
      const Content from = dice.next() % 2 == 0 ? file : other;
      const auto part = part_of(from, dice);
      file.insert(at, part.begin(), part.end());
    }
  }
}

}  // namespace

Content changed(const std::vector<Content> &files, std::uint64_t number) {
  Dice dice(number * 0x9e3779b97f4a7c15ULL);
  for (int i = 0; i < 4; ++i) dice.next();
  const auto any = [&]() -> const Content & { return files[dice.next() % files.size()]; };
  Content file = any();
  const unsigned times = 1U << dice.next() % 5;
  for (unsigned i = 0; i < times; ++i) {
    const Content &other = any();
    if (file.empty() || other.empty()) break;
    if (dice.next() % 4 == 0)
      insert_or_erase(file, other, dice);
    else
      write_over(file, other, dice);
  }
  return file;
}

}  // namespace fuzz
