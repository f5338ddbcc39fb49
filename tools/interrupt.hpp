// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

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

}  // namespace tool
