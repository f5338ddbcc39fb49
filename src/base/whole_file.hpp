// SPDX-License-Identifier: Apache-2.0
// A file that is written whole or not at all, whatever a name stands for. It needs nothing of this library: the command
// has it, too. Functions return 0 or an error number.
#pragma once

#include <cstddef>
#include <string>

namespace qtn {

/// Until commit(), what is written has a temporary name beside the file that `path` leads to, over links, and is
/// removed where commit() is never reached. What is no regular file, such as a pipe or /dev/stdout, stays what it is
/// and gets the bytes at once.
class WholeFile {
 public:
  WholeFile() = default;
  ~WholeFile();
  WholeFile(const WholeFile &) = delete;
  WholeFile &operator=(const WholeFile &) = delete;

  /// Whether a file could be made at `path` now, which a program asks before minutes of work.
  static int check(const std::string &path);

  int open(const std::string &path);
  int write(const void *from, std::size_t count);
  /// On the disk, too: neither a full one nor a crash leaves half a file.
  int commit();

 private:
  std::string target_, temporary_;  ///< empty: written at once
  int fd_ = -1;
};

}  // namespace qtn
