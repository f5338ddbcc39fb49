// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::binary_avx512 {
namespace {

/// op: two vectors of float(a - za), float(b - zb) to real values in units of the output scale.
template <bool small, class Op>
void run(const BinaryArgs &args, const Op &op) {
  const Spread spread_a(args.a_zero), spread_b(args.b_zero);
  const Saturate saturate(args.range);
  const auto vector = [&](__m512i a, __m512i b) {
    __m512 fa[4], fb[4];
    spread_a(a, fa);
    spread_b(b, fb);
    __m512i q[4];
    unroll<4>([&](auto v) {
      const __m512 real = op(fa[v], fb[v]);
      q[v] = small ? saturate.round_small(real) : saturate.round_any(real);
    });
    return saturate.bytes(saturate.words(q[0], q[1]), saturate.words(q[2], q[3]));
  };
  for (std::size_t i = 0; i < args.rows && args.columns > 0; ++i) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i);
    const std::uint8_t *a = args.a + row * args.a_row, *b = args.b + row * args.b_row;
    std::uint8_t *y = args.y + row * args.y_row;
    const __m512i a_first = _mm512_set1_epi8(static_cast<char>(*a)), b_first = _mm512_set1_epi8(static_cast<char>(*b));
    std::size_t j = 0;
    for (; j + 64 <= args.columns; j += 64)
      _mm512_storeu_si512(y + j, vector(args.a_step ? load(a + j) : a_first, args.b_step ? load(b + j) : b_first));
    if (j == args.columns) continue;
    const __mmask64 mask = _cvtu64_mask64(first_lanes(args.columns - j));
    _mm512_mask_storeu_epi8(y + j, mask,
                            vector(args.a_step ? _mm512_maskz_loadu_epi8(mask, a + j) : a_first,
                                   args.b_step ? _mm512_maskz_loadu_epi8(mask, b + j) : b_first));
  }
}

template <class Op>
void run(const BinaryArgs &strided, const Op &op) {
  const BinaryArgs args = merged_rows(strided);
  results_are_small(args) ? run<true>(args, op) : run<false>(args, op);
}

}  // namespace

void add(const BinaryArgs &args) {
  const __m512 ma = _mm512_set1_ps(args.a_multiplier), mb = _mm512_set1_ps(args.b_multiplier);
  run(args, [=](__m512 a, __m512 b) { return _mm512_add_ps(_mm512_mul_ps(a, ma), _mm512_mul_ps(b, mb)); });
}

void mul(const BinaryArgs &args) {
  const __m512 m = _mm512_set1_ps(args.a_multiplier);
  run(args, [=](__m512 a, __m512 b) { return _mm512_mul_ps(_mm512_mul_ps(a, b), m); });  // a * b is exact, below 2^16
}

}  // namespace qtn::kernels::binary_avx512
