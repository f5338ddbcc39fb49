// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace tool {

/// A count on standard error, shown only where that is a terminal and erased at the end.
class Progress {
 public:
  Progress(std::string what, size_t total)
      : what_(std::move(what)), total_(total), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void at(size_t done) const {
    if (shown_) std::fprintf(stderr, "\r%s %zu/%zu", what_.c_str(), done, total_);
  }

 private:
  std::string what_;
  size_t total_;
  bool shown_;
};

}  // namespace tool
