// SPDX-License-Identifier: Apache-2.0
// Sizes that follow from a file: their sums and products throw where they would wrap, so that no small piece of memory
// stands for a large one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace qtn {

class Size {
 public:
  /// No machine has as much memory, and some can still be added or rounded up without a check.
  static constexpr std::size_t kLimit = std::size_t{1} << 62;

  template <std::integral T>
  Size(T value) : value_(static_cast<std::size_t>(value)) {
    if (std::cmp_less(value, 0) || std::cmp_greater(value, kLimit)) too_large();
  }

  std::size_t value() const { return value_; }
  std::int64_t as_signed() const { return static_cast<std::int64_t>(value_); }

  friend Size operator+(Size a, Size b) { return a.value_ + b.value_; }
  friend Size operator*(Size a, Size b) {
    std::size_t product;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) too_large();
    return product;
  }

 private:
  [[noreturn]] static void too_large() { fail(QTN_ENOMEM, "a size over ", kLimit, " bytes or elements is needed"); }

  std::size_t value_;
};

}  // namespace qtn
