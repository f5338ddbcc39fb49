// SPDX-License-Identifier: Apache-2.0
// What networks in float32, and calibration by them, do besides matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// y[i] = begin + sum over taps, in their order, of weights[t] * x[offsets[t] + i]
struct TapsArgs {
  const float *x;
  const std::ptrdiff_t *offsets;
  const float *weights;
  std::size_t taps;
  float begin;
  float *y;
  std::size_t count;
};

/// The gradient of a function with bounds: dx[i] = dy[i] where its value y[i] lies between them, 0 where it is on one.
struct GateArgs {
  const float *dy, *y;
  float lo, hi;
  float *dx;
  std::size_t count;
};

/// Rows of a plane, or every x_step-th of their elements, to every y_step-th of others:
/// y[row * y_pitch + i * y_step] = x[row * x_pitch + i * x_step], or with `adds` += that
struct CopyArgs {
  const float *x;
  std::size_t x_pitch, x_step;
  float *y;
  std::size_t y_pitch, y_step;
  std::size_t rows, columns;
  bool adds = false;
};

/// Lanes of a long sum, each with a sum of its own.
inline constexpr std::size_t kSumLanes = 16;

/// How outputs, counted through rows of `length`, meet elements of copies: output i has its first tap at
/// (column + i) / length * pitch + (column + i) % length. Multiples of kSumLanes, and so is `column`; or there is one row.
struct Rows {
  std::size_t length, pitch;
  std::size_t column = 0;
};

/// One pass of a convolution over copies of planes, for `filters` filters: y[f * y_step + i] = sum over taps, in their
/// order, of weights[t * filters + f] * x[offsets[t] + first tap of i], each product added without rounding it first
struct ConvolveArgs {
  const float *x;
  Rows rows;
  const std::ptrdiff_t *offsets;
  const float *weights;
  std::size_t taps, filters;
  float *y;
  std::size_t y_step, count;
};

/// Its gradient with respect to the weights: sums[f * sums_step + t] += sum over images and i in [0, count) of
/// dy[image * dy_image + f * dy_step + i] * x[image * x_image + offsets[t] + first tap of i]. Products i, i + 16, ... are
/// a lane, which adds them without rounding them first.
struct CorrelateArgs {
  const float *x;
  Rows rows;
  const std::ptrdiff_t *offsets;
  std::size_t taps, x_image;
  const float *dy;
  std::size_t dy_step, dy_image, filters, images;
  std::size_t count;  ///< a multiple of kSumLanes
  float *sums;
  std::size_t sums_step;
};

/// One tap of `count` windows: where x[i * step] is more than top[i], is NaN, or is the first (at[i] < 0), it becomes
/// top[i] and `tap` becomes at[i].
struct TakeArgs {
  const float *x;
  std::size_t step, count;
  std::int32_t tap;
  float *top;
  std::int32_t *at;
};

/// Where not all are finite, the ends are not to be used. Zeros have no sign.
struct Extent {
  float min, max;
  bool finite;
};

struct RealKernel {
  const char *name;
  Isa isa;
  void (*taps)(const TapsArgs &args);
  void (*clamp)(float *y, std::size_t count, float lo, float hi);                ///< NaN stays
  void (*add)(float *y, const float *x, std::size_t count, float lo, float hi);  ///< y = clamp(y + x)
  Extent (*extent)(const float *x, std::size_t count);                           ///< of one value or more
  void (*gate)(const GateArgs &args);
  void (*copy)(const CopyArgs &args);
  void (*convolve)(const ConvolveArgs &args);
  void (*correlate)(const CorrelateArgs &args);
  void (*take)(const TakeArgs &args);
};

std::span<const RealKernel> real_kernels();

/// The one for the instruction set in force.
const RealKernel &real_kernel();

}  // namespace qtn::kernels
