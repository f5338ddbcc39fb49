// SPDX-License-Identifier: Apache-2.0
// The peak is that of twelve independent chains (four of tiles) of the instruction that the best kernel uses, registers
// only.
#include "peak.hpp"

#include <time.h>

#include <cstdint>

#include "base/cpu.hpp"

namespace qtn::bench {
namespace {

constexpr long kRounds = 200000;
constexpr int kChains = 12;

bool usable(Isa level) { return level <= isa() && cpu_has(level); }

#if defined(__x86_64__)
// One line for each chain, accumulators 0 to 11; the operands are whatever registers 12 and 13 hold.
#define QTN_TWELVE(line) \
  line(0) line(1) line(2) line(3) line(4) line(5) line(6) line(7) line(8) line(9) line(10) line(11)
#define QTN_ZMM_LINE(i) "vpdpbusd %%zmm12, %%zmm13, %%zmm" #i "\n"
#define QTN_VEX_LINE(i) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" #i "\n"
#define QTN_AVX2_LINE(i) "vpmaddwd %%ymm12, %%ymm13, %%ymm14\n vpaddd %%ymm14, %%ymm" #i ", %%ymm" #i "\n"
#define QTN_TILE_LINE(i) "tdpbusd %%tmm6, %%tmm4, %%tmm" #i "\n"
#define QTN_FOUR_TILES QTN_TILE_LINE(0) QTN_TILE_LINE(1) QTN_TILE_LINE(2) QTN_TILE_LINE(3)
#define QTN_LOOP(line)                                                                                          \
  {                                                                                                             \
    long n = kRounds;                                                                                           \
    __asm__ volatile("1:\n" QTN_TWELVE(line) "dec %0\n jnz 1b\n vzeroupper"                                     \
                     : "+r"(n)                                                                                  \
                     :                                                                                          \
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");                                      \
  }

/// Runs the loop once and tells how many products one instruction of a chain adds.
double run_loop() {
  if (usable(Isa::amx)) {
    struct alignas(64) {
      std::uint8_t palette = 1, reserved[15] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } layout;
    long n = kRounds;
    __asm__ volatile("ldtilecfg %1\n1:\n" QTN_FOUR_TILES QTN_FOUR_TILES QTN_FOUR_TILES "dec %0\n jnz 1b\n tilerelease"
                     : "+r"(n)
                     : "m"(layout)
                     : "cc");
    return 16 * 16 * 64;
  }
  if (usable(Isa::avx512vnni)) {
    QTN_LOOP(QTN_ZMM_LINE);
    return 64;
  }
  if (usable(Isa::avxvnni)) {
    QTN_LOOP(QTN_VEX_LINE);
    return 32;
  }
  if (usable(Isa::avx2)) {
    QTN_LOOP(QTN_AVX2_LINE);
    return 16;
  }
  return 0;
}
#else
double run_loop() { return 0; }
#endif

}  // namespace

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double peak_macs() {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = thread_seconds();
    const double macs = run_loop() * kRounds * kChains;
    const double seconds = thread_seconds() - start;
    if (macs / seconds > best) best = macs / seconds;
  }
  return best > 0 ? best : 1;
}

/// Two such instructions in a cycle is what every CPU since Ice Lake server and Zen 5 issues, one of tiles in sixteen.
double peak_macs_per_cycle() {
  return usable(Isa::amx)          ? 1024
         : usable(Isa::avx512vnni) ? 128
         : usable(Isa::avxvnni)    ? 64
         : usable(Isa::avx2)       ? 32
                                   : 1;
}

}  // namespace qtn::bench
