// SPDX-License-Identifier: Apache-2.0
// Files: read at any place, written whole or not at all. What fails throws QTN_EIO with the path and the system's
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/whole_file.hpp"

namespace qtn {

/// A regular file open for reading; nothing else is opened. Or bytes that stand for one, and must outlive this.
class InputFile {
 public:
  explicit InputFile(std::string path);
  InputFile(std::string name, std::span<const std::byte> bytes);
  ~InputFile();
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;

  const std::string &path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Exactly `count` bytes that begin at `offset`.
  void read(void *to, std::uint64_t offset, std::size_t count) const;

 private:
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
  const std::byte *bytes_ = nullptr;
};

/// What WholeFile says of a path, with exceptions.
class OutputFile {
 public:
  explicit OutputFile(std::string path);

  void write(const void *from, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void check(int error) const;

  std::string path_;
  WholeFile file_;
};

std::vector<char> read_file(const std::string &path);
void write_file(const std::string &path, std::string_view bytes);

}  // namespace qtn
