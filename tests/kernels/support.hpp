// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: seeded random data, memory that ends at a page nobody may touch, and the formula of
// requantization written once more, in double and 64-bit integers, as the judge of `ref`.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/cpu.hpp"
#include "base/memory.hpp"
#include "base/requantize.hpp"

// Last: cmocka defines fail() as a macro, and wants these before it.
// clang-format off
extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
}
// clang-format on

namespace qtn::test {

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}

  /// Uniform in [lo, hi].
  template <class T = int>
  T in(std::int64_t lo, std::int64_t hi) {
    return static_cast<T>(std::uniform_int_distribution<std::int64_t>(lo, hi)(engine_));
  }
  float real(float lo, float hi) { return std::uniform_real_distribution<float>(lo, hi)(engine_); }
  bool one_in(int n) { return in(1, n) == 1; }

  template <class T>
  void fill(std::span<T> to, std::int64_t lo, std::int64_t hi) {
    for (T &v : to) v = in<T>(lo, hi);
  }

  /// Zero points at both ends and in between; ranges full and narrowed as activations do.
  QuantizedRange range() {
    QuantizedRange r;
    r.zero = one_in(3) ? 0 : one_in(3) ? 255 : in(0, 255);
    if (one_in(2)) r.lo = in(0, r.zero);
    if (one_in(3)) r.hi = in(r.lo, 255);
    return r;
  }

 private:
  std::mt19937 engine_;
};

/// `count` elements, `slack` more readable bytes, then a page that must not be touched.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t count, std::size_t slack = 0) : count_(count) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t used = count * sizeof(T) + slack;
    mapped_ = round_up(used, page) + page;
    base_ = static_cast<char *>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + mapped_ - page, page, PROT_NONE) != 0) std::abort();
    data_ = base_ + mapped_ - page - used;
    std::memset(base_, 0xA5, mapped_ - page);
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;

  T *data() const { return reinterpret_cast<T *>(data_); }
  std::size_t size() const { return count_; }
  std::span<T> span() const { return {data(), count_}; }
  T &operator[](std::size_t i) const { return data()[i]; }

 private:
  std::size_t count_, mapped_ = 0;
  char *base_ = nullptr, *data_ = nullptr;
};

/// The contract of base/requantize.hpp. A product of two floats is exact in double; one rounding makes it the float
/// product.
inline std::uint8_t naive_quantize(double v, const QuantizedRange &r) {
  if (std::isnan(v)) v = 0;
  const double rounded = std::nearbyint(std::fmin(std::fmax(v, -1e9), 1e9)) + r.zero;
  return static_cast<std::uint8_t>(std::fmin(std::fmax(rounded, r.lo), r.hi));
}

inline std::uint8_t naive_requantize(std::int64_t acc, float multiplier, const QuantizedRange &r) {
  const double v = static_cast<double>(static_cast<float>(acc)) * static_cast<double>(multiplier);
  return naive_quantize(static_cast<double>(static_cast<float>(v)), r);
}

/// Multipliers as models have them, and some that overflow, vanish or are zero.
inline float any_multiplier(Random &random) {
  switch (random.in(0, 9)) {
    case 0:
      return 3e38f;
    case 1:
      return 1e-42f;
    case 2:
      return 0.0f;
    case 3:
      return 0.5f;  // ties
    case 4:
      return 1.0f;
    default:
      return std::exp2(random.real(-20.0f, 0.0f));
  }
}

template <class T>
void expect_same(std::span<const T> got, std::span<const T> want, const char *kernel, const char *what) {
  if (want.empty() || std::memcmp(got.data(), want.data(), want.size_bytes()) == 0) return;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0)
      fail_msg("%s: %s: element %zu of %zu is %g, expected %g", kernel, what, i, want.size(),
               static_cast<double>(got[i]), static_cast<double>(want[i]));
}

/// Every row of a list that this CPU can run, whatever level is in force; tells which.
template <class Kernel, class Body>
void each_kernel(std::span<const Kernel> rows, Body body) {
  for (const Kernel &row : rows)
    if (cpu_has(row.isa)) {
      print_message("kernel %s\n", row.name);
      body(row);
    } else {
      print_message("kernel %s: not on this CPU\n", row.name);
    }
}

}  // namespace qtn::test
