// SPDX-License-Identifier: Apache-2.0
#include "base/memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <new>

#include "base/buffer_reuse.hpp"
#include "base/limits.hpp"
#include "base/poison.hpp"

namespace qtn {
namespace {

/// Memory that is large comes in large pages where the system has them: most of the time of writing fresh memory is
/// that of its pages. Where it has none, nothing happens.
void ask_for_large_pages([[maybe_unused]] std::byte *p, [[maybe_unused]] std::size_t size) {
#if defined(MADV_HUGEPAGE)
  constexpr std::size_t kWorthwhile = 4 << 20, kPage = 4096;
  if (size < kWorthwhile) return;
  const std::size_t before = (kPage - reinterpret_cast<std::uintptr_t>(p) % kPage) % kPage;
  madvise(p + before, (size - before) / kPage * kPage, MADV_HUGEPAGE);
#endif
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t size) : bytes_(nullptr, {Allowance::take(size), size, size + kReadSlack}) {
  AlignedDelete &memory = bytes_.get_deleter();
  if (const Block block = BufferReuse::take(memory.room); block.bytes) {
    memory.room = block.size;
    bytes_.reset(block.bytes);
  } else {
    try {
      bytes_.reset(static_cast<std::byte *>(::operator new (memory.room, std::align_val_t{kAlignment})));
    } catch (...) {
      Allowance::give_back(memory.scope, size);
      throw;
    }
    ask_for_large_pages(bytes_.get(), size);
  }
  poison(bytes_.get(), size + kReadSlack);
}

void AlignedDelete::operator()(std::byte *p) const noexcept {
  if (!BufferReuse::keep({p, room})) ::operator delete (p, std::align_val_t{kAlignment});
  Allowance::give_back(scope, size);
}

}  // namespace qtn
