// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/find_named.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace qtn {
namespace {

constexpr std::array kNames{"scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};

struct Features {
  std::array<bool, kNames.size()> has{true};
  bool &operator[](Isa isa) { return has[static_cast<std::size_t>(isa)]; }
};

#if defined(__x86_64__)
/// Linux gives a process the tiles of the matrix unit when it asks, and not where a thread's stack for signals is too small.
bool tiles_are_given() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

Features detect() {
  Features f;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return f;
  unsigned xcr0 = 0, xcr0_high = 0;
  __asm__("xgetbv" : "=a"(xcr0), "=d"(xcr0_high) : "c"(0));
  const bool ymm_saved = (xcr0 & 0x06) == 0x06;
  const bool zmm_saved = (xcr0 & 0xe6) == 0xe6;
  const bool fma = (c & bit_FMA) != 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
  const unsigned avx512_core = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  f[Isa::avx2] = ymm_saved && fma && (b & bit_AVX2);
  f[Isa::avx512] = f[Isa::avx2] && zmm_saved && (b & avx512_core) == avx512_core;
  f[Isa::avx512vnni] = f[Isa::avx512] && (c & bit_AVX512VNNI);
  const unsigned tiles_saved = 3u << 17, int8_tiles = 3u << 24;
  f[Isa::amx] =
      f[Isa::avx512vnni] && (xcr0 & tiles_saved) == tiles_saved && (d & int8_tiles) == int8_tiles && tiles_are_given();
  unsigned a1 = 0, b1 = 0, c1 = 0, d1 = 0;
  if (a >= 1 && __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1)) f[Isa::avxvnni] = f[Isa::avx2] && (a1 & (1u << 4));
  return f;
}
#elif defined(__aarch64__)
Features detect() {
  Features f;
  f[Isa::neon] = true;
  f[Isa::dotprod] = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
  f[Isa::i8mm] = f[Isa::dotprod] && (getauxval(AT_HWCAP2) & HWCAP2_I8MM);
  return f;
}
#else
Features detect() { return {}; }
#endif

const Features &features() {
  static const Features f = detect();
  return f;
}

Isa best() {
  for (int level = static_cast<int>(kNames.size()) - 1; level > 0; --level)
    if (features().has[static_cast<std::size_t>(level)]) return static_cast<Isa>(level);
  return Isa::scalar;
}

/// A level of this architecture, not above the best.
bool offered(Isa isa) { return isa == Isa::scalar || (isa <= best() && (isa >= Isa::neon) == (best() >= Isa::neon)); }

Isa parse(const char *name) { return static_cast<Isa>(&find_named(kNames, name, "isa", "name") - kNames.data()); }

std::atomic<Isa> &level() {
  static std::atomic<Isa> value = [] {
    Isa start = best();
    if (const char *name = std::getenv("QTENSOR_ISA"))
      for (std::size_t i = 0; i < kNames.size(); ++i)
        if (std::strcmp(name, kNames[i]) == 0 && offered(static_cast<Isa>(i))) start = static_cast<Isa>(i);
    return start;
  }();
  return value;
}

}  // namespace

const char *isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

Isa isa() { return level().load(std::memory_order_relaxed); }

bool cpu_has(Isa isa) { return features().has[static_cast<std::size_t>(isa)]; }

void set_isa(const char *name) {
  const Isa wanted = parse(name);
  if (!offered(wanted)) fail(QTN_EUNSUPPORTED, "isa: this CPU offers up to ", isa_name(best()), ", not ", name);
  level().store(wanted, std::memory_order_relaxed);
}

}  // namespace qtn
