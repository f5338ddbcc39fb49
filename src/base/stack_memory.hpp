// SPDX-License-Identifier: Apache-2.0
// Memory for short lists of a call, on its stack: only longer ones allocate.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <vector>

namespace qtn {

class StackMemory {
 public:
  template <class T>
  std::pmr::vector<T> list(std::size_t count) {
    return std::pmr::vector<T>(count, &resource_);
  }

 private:
  std::array<std::byte, 4096> room_;
  std::pmr::monotonic_buffer_resource resource_{room_.data(), room_.size()};
};

}  // namespace qtn
