// SPDX-License-Identifier: Apache-2.0
// Little-endian binary, written and read with bounds checked.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace qtn::quant {

class ByteWriter {
 public:
  void u8(std::uint8_t v) { bytes_.push_back(static_cast<std::byte>(v)); }
  void u32(std::uint32_t v) { integer(v, 4); }
  void u64(std::uint64_t v) { integer(v, 8); }
  void i64(std::int64_t v) { u64(static_cast<std::uint64_t>(v)); }
  void f32(float v) { u32(std::bit_cast<std::uint32_t>(v)); }
  void f64(double v) { u64(std::bit_cast<std::uint64_t>(v)); }
  void text(std::string_view s) {
    u32(static_cast<std::uint32_t>(s.size()));
    for (const char c : s) u8(static_cast<std::uint8_t>(c));
  }
  void f32s(std::span<const float> values) {
    u64(values.size());
    for (const float v : values) f32(v);
  }
  void bytes(std::span<const std::byte> from) {
    u64(from.size());
    bytes_.insert(bytes_.end(), from.begin(), from.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void integer(std::uint64_t v, int size) {
    for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  std::vector<std::byte> bytes_;
};

/// Throws QTN_EFORMAT where bytes end too early.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view who) : bytes_(bytes), who_(who) {}

  std::uint8_t u8() {
    if (at_ == bytes_.size()) broken("ends too early");
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  float f32() { return std::bit_cast<float>(u32()); }
  double f64() { return std::bit_cast<double>(u64()); }
  std::string text() {
    const std::size_t size = length(u32(), 1);
    std::string s;
    for (std::size_t i = 0; i < size; ++i) s.push_back(static_cast<char>(u8()));
    return s;
  }
  std::span<const std::byte> bytes(std::size_t count) {
    const std::span<const std::byte> part = bytes_.subspan(at_, length(count, 1));
    at_ += count;
    return part;
  }
  std::vector<float> f32s() {
    std::vector<float> values(length(u64(), 4));
    for (float &v : values) v = f32();
    return values;
  }

  /// A count of things of `size` bytes, each of which must still be there, so that a wrong count allocates nothing.
  std::size_t length(std::uint64_t count, std::size_t size) const {
    if (count > remaining() / size) broken("ends too early");
    return static_cast<std::size_t>(count);
  }
  std::size_t remaining() const { return bytes_.size() - at_; }
  [[noreturn]] void broken(std::string_view why) const {
    fail(QTN_EFORMAT, who_, ": ", why, " (at byte ", at_, " of ", bytes_.size(), ")");
  }

 private:
  std::uint64_t integer(int size) {
    std::uint64_t v = 0;
    for (int i = 0; i < size; ++i) v |= static_cast<std::uint64_t>(u8()) << (8 * i);
    return v;
  }
  std::span<const std::byte> bytes_;
  std::string_view who_;
  std::size_t at_ = 0;
};

}  // namespace qtn::quant
