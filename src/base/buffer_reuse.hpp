// SPDX-License-Identifier: Apache-2.0
// Large buffers that are taken and given back many times in one piece of work, as by conversions, by sessions that are
// tried in turn, and by runs whose shapes depend on data. The system clears the pages of fresh memory, which takes
// longer than writing them does.
#pragma once

#include <array>
#include <cstddef>

namespace qtn {

/// Memory for elements, as operator new gave it.
struct Block {
  std::byte *bytes = nullptr;
  std::size_t size = 0;
};

/// Blocks that nobody uses, for a piece of work or for the next one. Kept and used ones together take at most 1 + `spare`
/// times what this piece of work, or the one before it, used at once; a block is at most so many times as large as what it
/// is used for. The oldest go first.
class KeptBlocks {
 public:
  explicit KeptBlocks(double spare) : spare_(spare) {}
  ~KeptBlocks();
  KeptBlocks(const KeptBlocks &) = delete;
  KeptBlocks &operator=(const KeptBlocks &) = delete;

  /// A piece of work begins.
  void begin();
  /// One with room for so many bytes; without memory where there is none, and then the caller takes so many elsewhere.
  Block take(std::size_t size);
  void keep(const Block &block) noexcept;

 private:
  Block taken_out(std::size_t index);
  void release(std::size_t index);
  void make_room();

  const double spare_;
  std::array<Block, 64> kept_;  // the oldest first
  std::size_t count_ = 0, kept_bytes_ = 0;
  std::size_t used_ = 0, most_used_ = 0, used_before_ = 0;
};

/// From here to the end of the scope, this thread keeps large blocks that it gives back, and takes them again.
class BufferReuse {
 public:
  /// For one piece of work.
  BufferReuse() : BufferReuse(own_) {}
  /// Those that are left stay there.
  explicit BufferReuse(KeptBlocks &blocks);
  ~BufferReuse();
  BufferReuse(const BufferReuse &) = delete;
  BufferReuse &operator=(const BufferReuse &) = delete;

  /// Whether this thread is in such a scope.
  static bool is_on();
  /// A kept block of this thread with room for so many bytes; without memory where there is none.
  static Block take(std::size_t size);
  /// Whether the block is kept; otherwise it stays with the caller.
  static bool keep(const Block &block) noexcept;

 private:
  KeptBlocks own_{0.25};
  KeptBlocks &blocks_;
  BufferReuse *outer_;
};

}  // namespace qtn
