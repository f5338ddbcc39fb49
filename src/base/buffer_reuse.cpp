// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_reuse.hpp"

#include <algorithm>
#include <new>

#include "base/memory.hpp"

namespace qtn {
namespace {

/// From here on the C library gives and takes memory to and from the system by itself.
constexpr std::size_t kLarge = 128 << 10;

thread_local BufferReuse *innermost = nullptr;

}  // namespace

BufferReuse::BufferReuse(KeptBlocks &blocks) : blocks_(blocks), outer_(innermost) {
  innermost = this;
  blocks.begin();
}

BufferReuse::~BufferReuse() { innermost = outer_; }

bool BufferReuse::is_on() { return innermost; }

Block BufferReuse::take(std::size_t size) {
  return innermost && size >= kLarge ? innermost->blocks_.take(size) : Block{};
}

bool BufferReuse::keep(const Block &block) noexcept {
  if (!innermost || block.size < kLarge) return false;
  innermost->blocks_.keep(block);
  return true;
}

KeptBlocks::~KeptBlocks() {
  while (count_ > 0) release(count_ - 1);
}

void KeptBlocks::begin() {
  used_before_ = most_used_;
  used_ = most_used_ = 0;
}

Block KeptBlocks::take(std::size_t size) {
  std::size_t best = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    const bool fits =
        kept_[i].size >= size && static_cast<double>(kept_[i].size - size) <= spare_ * static_cast<double>(size);
    if (fits && (best == count_ || kept_[i].size < kept_[best].size)) best = i;
  }
  const Block block = best == count_ ? Block{} : taken_out(best);
  used_ += block.bytes ? block.size : size;
  most_used_ = std::max(most_used_, used_);
  make_room();
  return block;
}

void KeptBlocks::keep(const Block &block) noexcept {
  used_ -= std::min(used_, block.size);  // it may come from elsewhere
  if (count_ == kept_.size()) release(0);
  kept_[count_++] = block;
  kept_bytes_ += block.size;
  make_room();
}

void KeptBlocks::make_room() {
  const double most = (1 + spare_) * static_cast<double>(std::max(most_used_, used_before_));
  while (count_ > 0 && static_cast<double>(kept_bytes_ + used_) > most) release(0);
}

Block KeptBlocks::taken_out(std::size_t index) {
  const Block block = kept_[index];
  std::move(kept_.begin() + index + 1, kept_.begin() + count_, kept_.begin() + index);
  --count_;
  kept_bytes_ -= block.size;
  return block;
}

void KeptBlocks::release(std::size_t index) {
  ::operator delete (taken_out(index).bytes, std::align_val_t{kAlignment});
}

}  // namespace qtn
