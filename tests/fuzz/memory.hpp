// SPDX-License-Identifier: Apache-2.0
// A bound on the memory that an input may take, so that an execution stays short: what is beyond it gets no memory, and
// the library has to say so.
#pragma once

#include <cstddef>

namespace fuzz {

class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit &) = delete;
  MemoryLimit &operator=(const MemoryLimit &) = delete;
};

}  // namespace fuzz
