// SPDX-License-Identifier: Apache-2.0
// Cache-line aligned memory. Every allocation of the library goes through operator new, so one hook sees them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace qtn {

inline constexpr std::size_t kAlignment = 64;

struct AlignedDelete {
  std::uint64_t scope = 0;  ///< of the allowance that it was taken from
  std::size_t size = 0;
  std::size_t room = 0;  ///< of the block, which may have held something larger before
  void operator()(std::byte *p) const noexcept;
};

/// Bytes past the end that kernels may read (never use), so that a dword or a vector load at the tail stays in bounds.
inline constexpr std::size_t kReadSlack = 64;

/// Owning, 64-byte aligned, uninitialised bytes, followed by kReadSlack readable bytes.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Throws QTN_ENOMEM where the allowance of this thread is less, std::bad_alloc where there is no memory.
  explicit AlignedBuffer(std::size_t size);

  std::byte *data() const noexcept { return bytes_.get(); }
  template <class T>
  T *as() const noexcept {
    return reinterpret_cast<T *>(bytes_.get());
  }
  std::size_t size() const noexcept { return bytes_.get_deleter().size; }

 private:
  std::unique_ptr<std::byte, AlignedDelete> bytes_;
};

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::size_t ceil_div(std::size_t value, std::size_t by) { return (value + by - 1) / by; }

}  // namespace qtn
