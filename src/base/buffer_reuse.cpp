// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_reuse.hpp"

#include <algorithm>
#include <new>

#include "base/memory.hpp"

namespace qtn {
namespace {

constexpr std::size_t kLarge = 1 << 20;

thread_local BufferReuse *innermost = nullptr;

}  // namespace

BufferReuse::BufferReuse() : outer_(innermost) { innermost = this; }

BufferReuse::~BufferReuse() {
  innermost = outer_;
  while (count_ > 0) release(count_ - 1);
}

Block BufferReuse::take(std::size_t size) { return innermost && size >= kLarge ? innermost->best_for(size) : Block{}; }

bool BufferReuse::keep(const Block &block) noexcept {
  if (!innermost || block.size < kLarge) return false;
  BufferReuse &reuse = *innermost;
  if (reuse.count_ == reuse.kept_.size()) reuse.release(0);
  reuse.kept_[reuse.count_++] = block;
  return true;
}

Block BufferReuse::best_for(std::size_t size) {
  std::size_t best = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    const bool fits = kept_[i].size >= size && kept_[i].size - size <= size / 4;
    if (fits && (best == count_ || kept_[i].size < kept_[best].size)) best = i;
  }
  if (best == count_) {
    for (std::size_t released = 0; count_ > 0 && released < size; release(0)) released += kept_[0].size;
    return {};
  }
  return taken_out(best);
}

Block BufferReuse::taken_out(std::size_t index) {
  const Block block = kept_[index];
  std::move(kept_.begin() + index + 1, kept_.begin() + count_, kept_.begin() + index);
  --count_;
  return block;
}

void BufferReuse::release(std::size_t index) {
  ::operator delete (taken_out(index).bytes, std::align_val_t{kAlignment});
}

}  // namespace qtn
