// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: seeded random data, memory between pages nobody may touch, and the formula of
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

/// A sum of products of floats by its definition: the elements of k in each 128 are a chain of fused multiply-adds, and
/// chains are added up in the order in which they began.
class SumOfProducts {
 public:
  explicit SumOfProducts(float begin) : chains_{begin} {}
  void add(std::size_t k, float a, float b) {
    if (k / 128 != block_) chains_.push_back(0.0f);
    block_ = k / 128;
    chains_.back() = std::fma(a, b, chains_.back());
  }
  float value() const {
    float sum = chains_[0];
    for (std::size_t i = 1; i < chains_.size(); ++i) sum += chains_[i];
    return sum;
  }

 private:
  std::vector<float> chains_;
  std::size_t block_ = 0;
};

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

  /// A zero point of uint8: both ends and in between.
  std::int32_t zero_point() { return one_in(3) ? 0 : one_in(3) ? 255 : in(0, 255); }

  /// Full and narrowed as activations do.
  QuantizedRange range() {
    QuantizedRange r;
    r.zero = zero_point();
    if (one_in(2)) r.lo = in(0, r.zero);
    if (one_in(3)) r.hi = in(r.lo, 255);
    return r;
  }

 private:
  std::mt19937 engine_;
};

/// On which side guarded memory touches a page that must not be touched.
enum class Edge { end, begin };
inline Edge guarded_edge = Edge::end;

/// `count` elements and `slack` more readable bytes between two forbidden pages, without a gap before one of them. The
/// rest of what lies between is filled with a pattern.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t count, std::size_t slack = 0) : count_(count) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t used = count * sizeof(T) + slack;
    room_ = round_up(used, page);
    mapped_ = room_ + 2 * page;
    base_ = static_cast<char *>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    begin_ = base_ + page;
    if (room_ > 0 && mprotect(begin_, room_, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = guarded_edge == Edge::end ? begin_ + room_ - used : begin_;
    std::memset(begin_, kPattern, room_);
  }
  explicit Guarded(const std::vector<T> &from) : Guarded(from.size()) {
    if (count_ > 0) std::memcpy(data_, from.data(), count_ * sizeof(T));
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;

  T *data() const { return reinterpret_cast<T *>(data_); }
  std::size_t size() const { return count_; }
  std::span<T> span() const { return {data(), count_}; }
  T &operator[](std::size_t i) const { return data()[i]; }

  /// How far from the first element a byte was written outside of the elements; 0: none was.
  std::ptrdiff_t written_outside() const {
    for (const char *p = begin_; p < begin_ + room_; ++p)
      if ((p < data_ || p >= data_ + count_ * sizeof(T)) && *p != kPattern) return p - data_;
    return 0;
  }

 private:
  static constexpr char kPattern = static_cast<char>(0xA5);

  std::size_t count_, room_ = 0, mapped_ = 0;
  char *base_ = nullptr, *begin_ = nullptr, *data_ = nullptr;
};

/// What kernels want in whole lines: packed weights, scratch.
inline Guarded<std::byte> guarded_lines(std::size_t bytes) { return Guarded<std::byte>(round_up(bytes, kAlignment)); }

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

/// What a scale brings to a few hundred integers; every hundredth lies next to the middle between two, where x / scale
/// decides and x * (1 / scale) does not.
inline float tame_float(Random &random, float scale) {
  if (!random.one_in(100)) return random.real(-300, 300) * scale;
  float x = (static_cast<float>(random.in(-300, 300)) + 0.5f) * scale;
  const int ulps = random.in(-3, 3);
  for (int i = 0; i < std::abs(ulps); ++i)
    x = std::nextafter(x, ulps < 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
  return x;
}

/// The elements, gaps between rows included, and nothing around them.
template <class T>
void expect_result(const Guarded<T> &got, std::span<const T> want, const char *kernel, const char *what) {
  expect_same<T>(got.span(), want, kernel, what);
  if (const std::ptrdiff_t at = got.written_outside(); at != 0)
    fail_msg("%s: %s: wrote byte %td of %zu", kernel, what, at, got.size() * sizeof(T));
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

template <std::size_t count>
int run_at_both_edges(const char *family, const CMUnitTest (&tests)[count]) {
  int failed = 0;
  for (const Edge edge : {Edge::end, Edge::begin}) {
    guarded_edge = edge;
    print_message("memory %s at a forbidden page\n", edge == Edge::end ? "ends" : "begins");
    failed += cmocka_run_group_tests_name(family, tests, nullptr, nullptr);
  }
  return failed;
}

}  // namespace qtn::test
