// SPDX-License-Identifier: Apache-2.0
#include "base/float_scope.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace qtn {
namespace {

#if defined(__x86_64__)
// MXCSR: masks of all exceptions; flush-to-zero and denormals-are-zero. Its lowest six bits only tell what has happened.
constexpr std::uint64_t kStandard = 0x1f80, kFlush = 0x8040, kTold = 0x3f;

std::uint64_t read() { return _mm_getcsr(); }
void write(std::uint64_t control) { _mm_setcsr(static_cast<unsigned>(control)); }
#elif defined(__aarch64__)
// FPCR: no traps; FZ, which is for operands and results.
constexpr std::uint64_t kStandard = 0, kFlush = std::uint64_t{1} << 24, kTold = 0;

std::uint64_t read() {
  std::uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void write(std::uint64_t control) { __asm__ volatile("msr fpcr, %0" ::"r"(control)); }
#else
constexpr std::uint64_t kStandard = 0, kFlush = 0, kTold = 0;

std::uint64_t read() { return 0; }
void write(std::uint64_t) {}
#endif

std::uint64_t control_of(FloatMode mode) { return mode == FloatMode::standard ? kStandard : kStandard | kFlush; }

}  // namespace

FloatScope::FloatScope(FloatMode mode) : before_(read()), changed_((before_ & ~kTold) != control_of(mode)) {
  if (changed_) write(control_of(mode));
}

FloatScope::~FloatScope() {
  if (changed_) write(before_);
}

FloatMode FloatScope::current() {
  return (read() & kFlush) == kFlush && kFlush != 0 ? FloatMode::without_denormals : FloatMode::standard;
}

}  // namespace qtn
