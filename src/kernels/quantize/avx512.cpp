// SPDX-License-Identifier: Apache-2.0
// Two layouts are vectorised: both sides contiguous along the same axis, and channels-last bytes against planes of
// floats.
#include "kernels/avx512.hpp"

#include "kernels/quantize/axes.hpp"
#include "kernels/quantize/quantize.hpp"
#include "kernels/quotient.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::quantize_avx512 {
namespace {

class Quantizer {
 public:
  explicit Quantizer(const QuantizeArgs &args)
      : scale_(_mm512_set1_ps(args.scale)), inverse_(_mm512_set1_ps(inverse_of(args.scale))), saturate_(args.range) {}

  /// Each lane holds four bytes of v[0], then of v[1], v[2], v[3].
  __m512i bytes(const __m512 (&v)[4]) const {
    __m512i rounded[4];
    unsigned unsure = 0;
    unroll<4>([&](auto k) {
      const __m512 product = _mm512_mul_ps(v[k], inverse_);
      rounded[k] = _mm512_cvtps_epi32(product);
      const __m512 off = _mm512_abs_ps(_mm512_sub_ps(product, _mm512_cvtepi32_ps(rounded[k])));
      unsure |= _cvtmask16_u32(_mm512_cmp_ps_mask(off, _mm512_set1_ps(kSureWithin), _CMP_NLE_UQ));
    });
    if (unsure) [[unlikely]]
      unroll<4>([&](auto k) { rounded[k] = saturate_.round_any(_mm512_div_ps(v[k], scale_)); });
    return saturate_.bytes(saturate_.words(rounded[0], rounded[1]), saturate_.words(rounded[2], rounded[3]));
  }

 private:
  __m512 scale_, inverse_;
  Saturate saturate_;
};

void quantize_rows(const QuantizeArgs &args) {
  const Quantizer quantizer(args);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (std::size_t i = 0; i < args.rows; ++i) {
    const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row;
    std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row;
    for (std::size_t j = 0; j < args.columns; j += 64) {
      const std::uint64_t mask = first_lanes(args.columns - j);
      __m512 parts[4];
      unroll<4>([&](auto k) {
        parts[k] =
            _mm512_maskz_loadu_ps(_cvtu32_mask16(static_cast<unsigned>(mask >> 16 * k) & 0xffff), x + j + 16 * k);
      });
      const __m512i bytes = _mm512_permutexvar_epi32(order, quantizer.bytes(parts));
      _mm512_mask_storeu_epi8(q + j, _cvtu64_mask64(mask), bytes);
    }
  }
}

/// Up to four planes become the bytes of 16 neighbouring rows: a 4x4 transposition of bytes in every lane.
void quantize_planes(const QuantizeArgs &args) {
  const Quantizer quantizer(args);
  const bool packed3 = args.columns == 3 && args.q_row == 3;
  const __m512i transpose4 =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i transpose3 =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, -1, -1, -1, -1));
  const __m512i close_gaps = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 3, 3, 3);
  for (std::size_t i = 0; i < args.rows; i += 16) {
    const std::size_t rows = args.rows - i < 16 ? args.rows - i : 16;
    const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(rows)));
    for (std::size_t c = 0; c < args.columns; c += 4) {
      const int used = static_cast<int>(args.columns - c < 4 ? args.columns - c : 4);
      const float *x = args.x + i + static_cast<std::ptrdiff_t>(c) * args.x_column;
      std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row + c;
      __m512 planes[4];
      unroll<4>([&](auto k) {
        planes[k] = k < used ? _mm512_maskz_loadu_ps(mask, x + k * args.x_column) : _mm512_setzero_ps();
      });
      const __m512i bytes = quantizer.bytes(planes);
      if (packed3) {
        const __m512i dense = _mm512_permutexvar_epi32(close_gaps, _mm512_shuffle_epi8(bytes, transpose3));
        _mm512_mask_storeu_epi8(q, _cvtu64_mask64(first_lanes(3 * rows)), dense);
        continue;
      }
      const __m512i dwords = _mm512_shuffle_epi8(bytes, transpose4);
      if (args.q_row == 4) {
        const std::uint64_t channels = 0x1111111111111111u * ((1u << used) - 1);
        _mm512_mask_storeu_epi8(q, _cvtu64_mask64(channels & first_lanes(4 * rows)), dwords);
        continue;
      }
      alignas(64) std::uint8_t by_row[16][4];
      _mm512_store_si512(by_row, dwords);
      for (std::size_t r = 0; r < rows; ++r, q += args.q_row)
        if (used == 4)
          __builtin_memcpy(q, by_row[r], 4);
        else
          for (int k = 0; k < used; ++k) q[k] = by_row[r][k];
    }
  }
}

class Dequantizer {
 public:
  explicit Dequantizer(const DequantizeArgs &args)
      : scale_(_mm512_set1_ps(args.scale)), zero_(_mm512_set1_epi32(args.zero)) {}

  __m512 operator()(__m512i dwords) const { return scaled(_mm512_sub_epi32(dwords, zero_), scale_); }

 private:
  __m512 scale_;
  __m512i zero_;
};

void dequantize_rows(const DequantizeArgs &args) {
  const Dequantizer dequantizer(args);
  for (std::size_t i = 0; i < args.rows; ++i) {
    const std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row;
    float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row;
    for (std::size_t j = 0; j < args.columns; j += 16) {
      const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(args.columns - j)) & 0xffff);
      _mm512_mask_storeu_ps(x + j, mask, dequantizer(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, q + j))));
    }
  }
}

void dequantize_planes(const DequantizeArgs &args) {
  const Dequantizer dequantizer(args);
  for (std::size_t i = 0; i < args.rows; i += 16) {
    const std::size_t rows = args.rows - i < 16 ? args.rows - i : 16;
    const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(rows)));
    for (std::size_t c = 0; c < args.columns; c += 4) {
      const std::size_t used = args.columns - c < 4 ? args.columns - c : 4;
      const std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row + c;
      alignas(64) std::uint8_t by_row[16][4] = {};
      for (std::size_t r = 0; r < rows; ++r, q += args.q_row)
        if (used == 4)
          __builtin_memcpy(by_row[r], q, 4);
        else
          for (std::size_t k = 0; k < used; ++k) by_row[r][k] = q[k];
      __m512i dwords = _mm512_load_si512(by_row);
      float *x = args.x + i + static_cast<std::ptrdiff_t>(c) * args.x_column;
      for (std::size_t k = 0; k < used; ++k, x += args.x_column, dwords = _mm512_srli_epi32(dwords, 8))
        _mm512_mask_storeu_ps(x, mask, dequantizer(_mm512_and_si512(dwords, _mm512_set1_epi32(255))));
    }
  }
}

}  // namespace

void quantize(const QuantizeArgs &args) { run_axes(args, quantize_rows, quantize_planes, quantize_ref::quantize); }
void dequantize(const DequantizeArgs &args) {
  run_axes(args, dequantize_rows, dequantize_planes, quantize_ref::dequantize);
}

}  // namespace qtn::kernels::quantize_avx512
