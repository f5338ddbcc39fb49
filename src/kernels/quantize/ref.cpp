// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize.hpp"

namespace qtn::kernels::quantize_ref {

void quantize(const QuantizeArgs &args) {
  for (std::size_t i = 0; i < args.rows; ++i) {
    const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row;
    std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row;
    for (std::size_t j = 0; j < args.columns; ++j, x += args.x_column, q += args.q_column)
      *q = quantize_scaled(*x / args.scale, args.range);
  }
}

void dequantize(const DequantizeArgs &args) {
  for (std::size_t i = 0; i < args.rows; ++i) {
    const std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row;
    float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row;
    for (std::size_t j = 0; j < args.columns; ++j, q += args.q_column, x += args.x_column)
      *x = static_cast<float>(*q - args.zero) * args.scale;
  }
}

}  // namespace qtn::kernels::quantize_ref
