// SPDX-License-Identifier: Apache-2.0
// What the kernel benchmarks share. A benchmark is a static Family object that registers one benchmark per kernel and
// shape.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.hpp"
#include "base/memory.hpp"
#include "peak.hpp"

namespace qtn::micro {

void register_gemm();
void register_gemm_real();
void register_depthwise();
void register_elementwise();
void register_quantize();
void register_grid();
void register_dot();
void register_call();
void register_pool();
void register_lut();
void register_fake();

using bench::peak_macs;
using bench::peak_macs_per_cycle;
using bench::thread_seconds;

/// Reports GMAC/s from here to the end of the scope, and how that compares with the peak
/// just before and after: clocks change.
class MacCounters {
 public:
  MacCounters(benchmark::State &state, double macs)
      : state_(state), macs_(macs), peak_(peak_macs()), start_(thread_seconds()) {}
  ~MacCounters() {
    const double seconds = thread_seconds() - start_;
    const double peak = (peak_ + peak_macs()) / 2;
    const double rate = macs_ * static_cast<double>(state_.iterations()) / seconds;
    state_.counters["GMAC/s"] = rate / 1e9;
    state_.counters["of_peak"] = rate / peak;
    state_.counters["MAC/cycle"] = rate / peak * peak_macs_per_cycle();
  }
  MacCounters(const MacCounters &) = delete;
  MacCounters &operator=(const MacCounters &) = delete;

 private:
  benchmark::State &state_;
  double macs_, peak_, start_;
};

template <class T>
void fill(T *to, std::size_t count, int lo, int hi) {
  std::minstd_rand engine(1);
  std::uniform_int_distribution<int> value(lo, hi);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(value(engine));
}

/// body(row) for every kernel that this CPU has.
template <class Kernel, class Body>
void each_kernel(std::span<const Kernel> rows, Body body) {
  for (const Kernel &row : rows)
    if (cpu_has(row.isa)) body(row);
}

}  // namespace qtn::micro
