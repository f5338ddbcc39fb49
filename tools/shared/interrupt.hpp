// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

#include "shared/handles.hpp"

namespace tool {

/// While it lives, the first Ctrl-C (SIGINT) only asks to stop; the second ends the process.
class Interrupt {
 public:
  Interrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { asked_ = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~Interrupt() { sigaction(SIGINT, &before_, nullptr); }
  Interrupt(const Interrupt &) = delete;
  Interrupt &operator=(const Interrupt &) = delete;

  bool asked() const { return asked_ != 0; }

 private:
  static inline volatile std::sig_atomic_t asked_ = 0;
  struct sigaction before_ {};
};

/// While it lives, the first signal that would end the process waits until the end of its scope: what is being written
/// there becomes whole, and leaves no temporary file. The second ends the process at once.
class Postponed {
 public:
  Postponed() {
    struct sigaction action {};
    action.sa_handler = [](int signal) { came_ = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    came_ = 0;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~Postponed() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    if (came_ != 0) std::raise(came_);
  }
  Postponed(const Postponed &) = delete;
  Postponed &operator=(const Postponed &) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  static inline volatile std::sig_atomic_t came_ = 0;
  std::array<struct sigaction, 3> before_{};
};

/// Fails where save() does, which writes a file.
template <class Save>
void write_whole(Save &&save) {
  const Postponed signals;
  check(save());
}

}  // namespace tool
