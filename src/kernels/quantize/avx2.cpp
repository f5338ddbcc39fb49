// SPDX-License-Identifier: Apache-2.0
// Two layouts are vectorised: both sides contiguous along the same axis, and channels-last bytes against planes of
// floats. A last block starts early enough to be whole, writing some elements twice; what is smaller than a block is
// left to `ref`.
#include "kernels/avx2.hpp"

#include "kernels/quantize/axes.hpp"
#include "kernels/quantize/quantize.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::quantize_avx2 {
namespace {

constexpr std::size_t kBlockColumns = 32, kBlockRows = 8;

/// The block at `at` or, if that is not whole, the last one that is.
std::size_t whole_block(std::size_t at, std::size_t block, std::size_t count) {
  return at + block <= count ? at : count - block;
}

class Quantizer {
 public:
  explicit Quantizer(const QuantizeArgs &args) : scale_(_mm256_set1_ps(args.scale)), saturate_(args.range) {}

  __m256i round(const float *p) const { return saturate_.round_any(_mm256_div_ps(_mm256_loadu_ps(p), scale_)); }
  /// Each lane holds four bytes of a, then of b, c, d.
  __m256i bytes(__m256i a, __m256i b, __m256i c, __m256i d) const {
    return saturate_.bytes(saturate_.words(a, b), saturate_.words(c, d));
  }

 private:
  __m256 scale_;
  Saturate saturate_;
};

void quantize_rows(const QuantizeArgs &args) {
  if (args.columns < kBlockColumns) return quantize_ref::quantize(args);
  const Quantizer quantizer(args);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (std::size_t i = 0; i < args.rows; ++i)
    for (std::size_t block = 0; block < args.columns; block += kBlockColumns) {
      const std::ptrdiff_t j = static_cast<std::ptrdiff_t>(whole_block(block, kBlockColumns, args.columns));
      const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row + j;
      const __m256i bytes =
          quantizer.bytes(quantizer.round(x), quantizer.round(x + 8), quantizer.round(x + 16), quantizer.round(x + 24));
      store(args.q + static_cast<std::ptrdiff_t>(i) * args.q_row + j, _mm256_permutevar8x32_epi32(bytes, order));
    }
}

/// Up to four planes become the bytes of 8 neighbouring rows: a 4x4 transposition of bytes in both lanes.
void quantize_planes(const QuantizeArgs &args) {
  if (args.rows < kBlockRows) return quantize_ref::quantize(args);
  const Quantizer quantizer(args);
  const __m256i transpose =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  for (std::size_t block = 0; block < args.rows; block += kBlockRows) {
    const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(whole_block(block, kBlockRows, args.rows));
    for (std::size_t c = 0; c < args.columns; c += 4) {
      const int used = static_cast<int>(args.columns - c < 4 ? args.columns - c : 4);
      const float *x = args.x + i + static_cast<std::ptrdiff_t>(c) * args.x_column;
      std::uint8_t *q = args.q + i * args.q_row + c;
      const auto plane = [&](int k) {
        return k < used ? quantizer.round(x + k * args.x_column) : _mm256_setzero_si256();
      };
      alignas(32) std::uint8_t by_row[kBlockRows][4];
      store(by_row, _mm256_shuffle_epi8(quantizer.bytes(plane(0), plane(1), plane(2), plane(3)), transpose));
      // Where rows of 2 or 3 bytes lie end to end, what a dword adds belongs to the next row, stored after it.
      const bool dense = args.q_row == used && used > 1;
      for (std::size_t r = 0; r < kBlockRows; ++r, q += args.q_row)
        if (used == 4 || (dense && r + 1 < kBlockRows))
          __builtin_memcpy(q, by_row[r], 4);
        else
          for (int k = 0; k < used; ++k) q[k] = by_row[r][k];
    }
  }
}

class Dequantizer {
 public:
  explicit Dequantizer(const DequantizeArgs &args)
      : scale_(_mm256_set1_ps(args.scale)), zero_(_mm256_set1_epi32(args.zero)) {}

  __m256 operator()(__m256i dwords) const { return scaled(_mm256_sub_epi32(dwords, zero_), scale_); }

 private:
  __m256 scale_;
  __m256i zero_;
};

void dequantize_rows(const DequantizeArgs &args) {
  if (args.columns < 8) return quantize_ref::dequantize(args);
  const Dequantizer dequantizer(args);
  for (std::size_t i = 0; i < args.rows; ++i)
    for (std::size_t block = 0; block < args.columns; block += 8) {
      const std::ptrdiff_t j = static_cast<std::ptrdiff_t>(whole_block(block, 8, args.columns));
      const std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row + j;
      const __m256i dwords = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(q)));
      _mm256_storeu_ps(args.x + static_cast<std::ptrdiff_t>(i) * args.x_row + j, dequantizer(dwords));
    }
}

void dequantize_planes(const DequantizeArgs &args) {
  if (args.rows < kBlockRows) return quantize_ref::dequantize(args);
  const Dequantizer dequantizer(args);
  for (std::size_t block = 0; block < args.rows; block += kBlockRows) {
    const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(whole_block(block, kBlockRows, args.rows));
    for (std::size_t c = 0; c < args.columns; c += 4) {
      const std::size_t used = args.columns - c < 4 ? args.columns - c : 4;
      const std::uint8_t *q = args.q + i * args.q_row + c;
      alignas(32) std::uint8_t by_row[kBlockRows][4] = {};
      for (std::size_t r = 0; r < kBlockRows; ++r, q += args.q_row)
        if (used == 4)
          __builtin_memcpy(by_row[r], q, 4);
        else
          for (std::size_t k = 0; k < used; ++k) by_row[r][k] = q[k];
      __m256i dwords = load(by_row);
      float *x = args.x + i + static_cast<std::ptrdiff_t>(c) * args.x_column;
      for (std::size_t k = 0; k < used; ++k, x += args.x_column, dwords = _mm256_srli_epi32(dwords, 8))
        _mm256_storeu_ps(x, dequantizer(_mm256_and_si256(dwords, _mm256_set1_epi32(255))));
    }
  }
}

}  // namespace

void quantize(const QuantizeArgs &args) { run_axes(args, quantize_rows, quantize_planes, quantize_ref::quantize); }
void dequantize(const DequantizeArgs &args) {
  run_axes(args, dequantize_rows, dequantize_planes, quantize_ref::dequantize);
}

}  // namespace qtn::kernels::quantize_avx2
