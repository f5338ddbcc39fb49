// SPDX-License-Identifier: Apache-2.0
// How a thread's floats behave, as its control register says: a program may have set it to round otherwise, to take
// denormals for zero or to trap, on one of its threads. Here the same happens on every thread.
#pragma once

#include <cstdint>

namespace qtn {

enum class FloatMode {
  standard,          ///< IEEE 754's default: they round to nearest, denormals are numbers, nothing traps
  without_denormals  ///< numbers below 2^-126, on which a CPU may spend most of its time, count as zero
};

/// For the lifetime of the object, on this thread and on those that work for it.
class FloatScope {
 public:
  explicit FloatScope(FloatMode mode);
  ~FloatScope();
  FloatScope(const FloatScope &) = delete;
  FloatScope &operator=(const FloatScope &) = delete;

  /// The mode of this thread, in a scope.
  static FloatMode current();

 private:
  std::uint64_t before_;
  bool changed_;
};

}  // namespace qtn
