// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace tool {

/// A bar with a count and the time left, on standard error; shown only where that is a terminal, and erased at the end.
class Progress {
 public:
  Progress() : shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// `done` of `total` things; another `what` begins again. A note stands behind the time left.
  void at(const std::string &what, size_t done, size_t total, const std::string &note = "") {
    using Seconds = std::chrono::duration<double>;
    const Clock::time_point now = Clock::now();
    if (what != what_) {
      what_ = what;
      start_ = last_;
    }
    last_ = now;
    if (!shown_ || (done < total && now < next_)) return;
    next_ = now + std::chrono::milliseconds(100);
    const double left = Seconds(now - start_).count() * static_cast<double>(total - done) / static_cast<double>(done);
    const auto seconds = static_cast<long>(left + 0.5);
    const size_t filled = kWidth * done / total;
    std::fprintf(stderr, "\r\033[K%s [%s%s] %zu/%zu, %ld:%02ld left%s", what_.c_str(), std::string(filled, '#').c_str(),
                 std::string(kWidth - filled, ' ').c_str(), done, total, seconds / 60, seconds % 60, note.c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kWidth = 30;

  std::string what_;
  bool shown_;
  Clock::time_point start_ = Clock::now(), last_ = start_, next_ = start_;
};

}  // namespace tool
