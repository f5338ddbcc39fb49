// SPDX-License-Identifier: Apache-2.0
// Addresses of the rows of a tile of A with few registers: five rows for each base, at 0, 1, 2 and 4 times lda and at
// 3 * lda. Left to itself the compiler keeps a pointer for every row, and spills them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qtn::kernels {
namespace {

template <int mr>
class Rows {
 public:
  Rows(const std::uint8_t *a, std::ptrdiff_t lda) : lda_(lda), lda3_(3 * lda) {
    for (int i = 0; i < kBases; ++i) base_[i] = a + 5 * i * lda;
  }

  /// Four bytes of row r, `at` bytes on, in every lane.
  template <int r, int at, class Vector>
  [[gnu::always_inline]] void broadcast(Vector &v) const {
    const std::uint8_t *p = base_[r / 5];
    const auto &bytes = *reinterpret_cast<const std::uint8_t(*)[4]>(p + at);
    if constexpr (r % 5 == 0) __asm__("vpbroadcastd %c2(%1), %0" : "=v"(v) : "r"(p), "i"(at), "m"(bytes));
    if constexpr (r % 5 == 1) __asm__("vpbroadcastd %c3(%1,%2), %0" : "=v"(v) : "r"(p), "r"(lda_), "i"(at), "m"(bytes));
    if constexpr (r % 5 == 2)
      __asm__("vpbroadcastd %c3(%1,%2,2), %0" : "=v"(v) : "r"(p), "r"(lda_), "i"(at), "m"(bytes));
    if constexpr (r % 5 == 3)
      __asm__("vpbroadcastd %c3(%1,%2), %0" : "=v"(v) : "r"(p), "r"(lda3_), "i"(at), "m"(bytes));
    if constexpr (r % 5 == 4)
      __asm__("vpbroadcastd %c3(%1,%2,4), %0" : "=v"(v) : "r"(p), "r"(lda_), "i"(at), "m"(bytes));
  }

  void move(std::ptrdiff_t bytes) {
    for (auto &p : base_) p += bytes;
  }

 private:
  static constexpr int kBases = (mr + 4) / 5;
  std::ptrdiff_t lda_, lda3_;
  const std::uint8_t *base_[kBases];
};

}  // namespace
}  // namespace qtn::kernels
