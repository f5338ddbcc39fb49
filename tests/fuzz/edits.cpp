// SPDX-License-Identifier: Apache-2.0
#include "edits.hpp"

#include <algorithm>
#include <cstring>

namespace fuzz {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;

template <typename T>
void put(std::vector<std::uint8_t> &file, std::size_t at, T value) {
  if (at + sizeof value <= file.size()) std::memcpy(file.data() + at, &value, sizeof value);
}

}  // namespace

std::vector<std::uint8_t> edited(const std::vector<std::uint8_t> &original, const std::uint8_t *data,
                                 std::size_t size) {
  if (size > 0 && data[0] == 0) return {data + 1, data + size};
  std::vector<std::uint8_t> file = original;
  Bytes bytes(data, size);
  bytes.byte();
  while (bytes.left() > 3 && file.size() < kMostBytes) {
    const std::uint8_t kind = bytes.byte();
    const auto place = static_cast<std::uint16_t>(bytes.number(2));
    const std::size_t at = file.empty() ? 0 : place % file.size();
    const auto there = file.begin() + static_cast<std::ptrdiff_t>(at);
    switch (kind % 8) {
      case 0:
        put(file, at, bytes.byte());
        break;
      case 1: {
        const std::size_t wanted = bytes.byte() % 16, count = std::min(wanted, bytes.left());
        const auto from = bytes.rest().first(count);
        file.insert(there, from.begin(), from.end());
        for (std::size_t i = 0; i < count; ++i) bytes.byte();
        break;
      }
      case 2:
        file.erase(there, there + std::min<std::ptrdiff_t>(bytes.byte(), file.end() - there));
        break;
      case 3:
        put(file, at / 4 * 4, static_cast<float>(awkward_float(bytes)));
        break;
      case 4:
        put(file, at / 8 * 8, awkward_float(bytes));
        break;
      case 5:
        put(file, at / 8 * 8, awkward_int(bytes));
        break;
      case 6: {  // text: a digit, a letter
        constexpr char kText[] = "0123456789-+.eE{}[]\":,nultrfas_/";
        put(file, at, kText[bytes.byte() % (sizeof kText - 1)]);
        break;
      }
      default: {
        const std::size_t count = std::min<std::size_t>(bytes.byte(), file.size() - at);
        const std::vector<std::uint8_t> part(there, there + static_cast<std::ptrdiff_t>(count));
        file.insert(file.begin() + static_cast<std::ptrdiff_t>(bytes.byte() % (file.size() + 1)), part.begin(),
                    part.end());
      }
    }
  }
  return file;
}

}  // namespace fuzz
