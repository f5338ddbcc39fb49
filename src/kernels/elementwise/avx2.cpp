// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::binary_avx2 {
namespace {

constexpr std::size_t kVector = 32;

/// op: two vectors of float(a - za), float(b - zb) to real values in units of the output scale.
template <bool small, class Op>
void run(const BinaryArgs &args, const Op &op) {
  const Spread spread_a(args.a_zero), spread_b(args.b_zero);
  const Saturate saturate(args.range);
  const auto vector = [&](__m256i a, __m256i b) {
    __m256 fa[4], fb[4];
    spread_a(a, fa);
    spread_b(b, fb);
    __m256i q[4];
    unroll<4>([&](auto v) {
      const __m256 real = op(fa[v], fb[v]);
      q[v] = small ? saturate.round_small(real) : saturate.round_any(real);
    });
    return saturate.bytes(saturate.words(q[0], q[1]), saturate.words(q[2], q[3]));
  };
  for (std::size_t i = 0; i < args.rows && args.columns > 0; ++i) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i);
    const std::uint8_t *a = args.a + row * args.a_row, *b = args.b + row * args.b_row;
    std::uint8_t *y = args.y + row * args.y_row;
    const __m256i a_first = _mm256_set1_epi8(static_cast<char>(*a)), b_first = _mm256_set1_epi8(static_cast<char>(*b));
    std::size_t j = 0;
    for (; j + kVector <= args.columns; j += kVector)
      store(y + j, vector(args.a_step ? load(a + j) : a_first, args.b_step ? load(b + j) : b_first));
    if (const std::size_t left = args.columns - j; left > 0) {
      alignas(32) std::uint8_t tail[3][kVector] = {};
      store(tail[0], a_first);
      store(tail[1], b_first);
      if (args.a_step) __builtin_memcpy(tail[0], a + j, left);
      if (args.b_step) __builtin_memcpy(tail[1], b + j, left);
      store(tail[2], vector(load(tail[0]), load(tail[1])));
      __builtin_memcpy(y + j, tail[2], left);
    }
  }
}

template <class Op>
void run(const BinaryArgs &strided, const Op &op) {
  const BinaryArgs args = merged_rows(strided);
  results_are_small(args) ? run<true>(args, op) : run<false>(args, op);
}

}  // namespace

void add(const BinaryArgs &args) {
  const __m256 ma = _mm256_set1_ps(args.a_multiplier), mb = _mm256_set1_ps(args.b_multiplier);
  run(args, [=](__m256 a, __m256 b) { return _mm256_add_ps(_mm256_mul_ps(a, ma), _mm256_mul_ps(b, mb)); });
}

void mul(const BinaryArgs &args) {
  const __m256 m = _mm256_set1_ps(args.a_multiplier);
  run(args, [=](__m256 a, __m256 b) { return _mm256_mul_ps(_mm256_mul_ps(a, b), m); });  // a * b is exact, below 2^16
}

}  // namespace qtn::kernels::binary_avx2
