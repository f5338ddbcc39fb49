// SPDX-License-Identifier: Apache-2.0
// Files: read at any place, and written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

using Bytes = std::vector<unsigned char>;

/// A regular file open for reading. Failures name the path.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Reads exactly `count` bytes that begin at `offset`.
  void read(void *out, uint64_t offset, size_t count) const;
  Bytes read_all() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// A file that appears under its name only when `commit` is called; before that it has a temporary name beside it, and
/// is removed when writing fails.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(const void *data, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void fail(const char *what) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Fails early, before minutes of work, when a file cannot be made at `path`.
void require_writable(const std::string &path);

}  // namespace tool
