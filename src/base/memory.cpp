// SPDX-License-Identifier: Apache-2.0
#include "base/memory.hpp"

#include <new>

#include "base/limits.hpp"
#include "base/poison.hpp"

namespace qtn {

AlignedBuffer::AlignedBuffer(std::size_t size) : bytes_(nullptr, {Allowance::take(size), size}) {
  try {
    bytes_.reset(static_cast<std::byte *>(::operator new (size + kReadSlack, std::align_val_t{kAlignment})));
  } catch (...) {
    Allowance::give_back(bytes_.get_deleter().scope, size);
    throw;
  }
  poison(bytes_.get(), size + kReadSlack);
}

void AlignedDelete::operator()(std::byte *p) const noexcept {
  ::operator delete (p, std::align_val_t{kAlignment});
  Allowance::give_back(scope, size);
}

}  // namespace qtn
