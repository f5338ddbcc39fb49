// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot/zmm.hpp"

namespace qtn::kernels::dot_avx512vnni {
namespace {

struct Vnni : Zmm, MixedSigns<Vnni> {
  using Bytes = __m512i;
  static constexpr std::size_t kBytes = 64;

  static Bytes load(const void *p) { return kernels::load(p); }
  static Bytes load_part(const void *p, std::size_t count) {
    return _mm512_maskz_loadu_epi8(_cvtu64_mask64(first_lanes(count)), p);
  }
  static Bytes ones() { return _mm512_set1_epi8(1); }
  static Sums dot(Sums acc, Bytes u8, Bytes s8) { return dot4(acc, u8, s8); }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Vnni>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Vnni>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_avx512vnni
