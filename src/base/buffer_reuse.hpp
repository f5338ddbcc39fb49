// SPDX-License-Identifier: Apache-2.0
// Large buffers that are taken and given back many times in one piece of work, as by conversions and sessions that are
// tried in turn. The system clears the pages of fresh memory, which takes longer than writing them does.
#pragma once

#include <array>
#include <cstddef>

namespace qtn {

/// Memory for elements, as operator new gave it.
struct Block {
  std::byte *bytes = nullptr;
  std::size_t size = 0;
};

/// From here to the end of the scope, this thread keeps large blocks that it gives back, and takes them again. Kept and
/// used ones together never exceed what was used at once by more than a quarter: what is not taken again goes where
/// others are needed.
class BufferReuse {
 public:
  BufferReuse();
  ~BufferReuse();
  BufferReuse(const BufferReuse &) = delete;
  BufferReuse &operator=(const BufferReuse &) = delete;

  /// A kept block of this thread with room for so many bytes; without memory where there is none.
  static Block take(std::size_t size);
  /// Whether the block is kept; otherwise it stays with the caller.
  static bool keep(const Block &block) noexcept;

 private:
  Block best_for(std::size_t size);
  Block taken_out(std::size_t index);
  void release(std::size_t index);

  std::array<Block, 64> kept_;  // the oldest first
  std::size_t count_ = 0;
  BufferReuse *outer_;
};

}  // namespace qtn
