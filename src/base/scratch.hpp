// SPDX-License-Identifier: Apache-2.0
// Memory that a call needs only while it runs, kept for the next: what repeats the same calls allocates once.
#pragma once

#include "base/memory.hpp"
#include "base/poison.hpp"

namespace qtn {

class Scratch {
 public:
  /// Uninitialised and aligned; valid until the next take().
  std::byte *take(std::size_t bytes) {
    if (buffer_.size() < bytes)
      buffer_ = AlignedBuffer(bytes);
    else
      poison(buffer_.data(), bytes);
    return buffer_.data();
  }

 private:
  AlignedBuffer buffer_;
};

}  // namespace qtn
