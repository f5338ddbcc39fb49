// SPDX-License-Identifier: Apache-2.0
// Between float32 and uint8, with the change of layout fused in.
//
//   quantize:   q = quantize_scaled(x / scale)      (true division: ONNX QuantizeLinear)
//   dequantize: x = float(q - zero) * scale
//
// Both walk [rows][columns]; either side may be transposed: element (i, j) is at i*row + j*column of each side's
// strides. So NCHW float to channels-last uint8 is rows = H*W, columns = C, x strides (1, H*W), q strides (C, 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

struct QuantizeArgs {
  std::size_t rows, columns;
  const float *x;
  std::ptrdiff_t x_row, x_column;  ///< elements
  std::uint8_t *q;
  std::ptrdiff_t q_row, q_column;  ///< elements
  float scale;
  QuantizedRange range;
};

struct DequantizeArgs {
  std::size_t rows, columns;
  const std::uint8_t *q;
  std::ptrdiff_t q_row, q_column;
  float *x;
  std::ptrdiff_t x_row, x_column;
  float scale;
  std::int32_t zero;
};

struct QuantizeKernel {
  const char *name;
  Isa isa;
  void (*quantize)(const QuantizeArgs &args);
  void (*dequantize)(const DequantizeArgs &args);
};

std::span<const QuantizeKernel> quantize_kernels();

}  // namespace qtn::kernels
