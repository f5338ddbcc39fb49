// SPDX-License-Identifier: Apache-2.0
// Quantization that training sees: values rounded to a grid but left in float32, and the gradients of that; alone, and
// behind a batch normalization and a clamp in one pass.
//
// Matrices are [rows][columns] without gaps. Sums have an order of their own, the same for every instruction set: of a
// row, element j is added to sum j % 16; of columns, each has one sum. They are formed in float32 over blocks of 16
// terms, in double over blocks, and the 16 of a row are added up in order. The columns beyond the last multiple of 16
// are a block of a row. What is NaN counts as outside of every range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/rounding.hpp"

namespace qtn::kernels {

/// One grid for each row, or for each column.
struct FakeGrids {
  const float *scale;        ///< or its inverse
  const std::int32_t *zero;  ///< in [lo, hi]
  std::int32_t lo, hi;       ///< in the range of 16 bits, signed or not
  Rounding rounding;
  bool inverses;  ///< under Rounding::reciprocal: x is multiplied and q divided by `scale`, as NVIDIA's toolkit does
};

/// y = from_grid(to_grid(x))
struct FakeArgs {
  std::size_t rows, columns;
  bool by_column;
  FakeGrids grids;
  const float *x;
  float *y;
};

/// Sums over a row or column: of dy * (steps - x / scale), steps being from_grid(to_grid(x)) / scale, where the second
/// term is left out outside of the range; and of dy outside.
struct FakeSums {
  double steps, outside;
};

/// dx = dy where x rounds to an integer from lo to hi, else 0. With `inverses` also 0 beyond the largest x for which
/// hi / x, in float32, is no less than that inverse.
struct FakeBackwardArgs {
  std::size_t rows, columns;
  bool by_column;
  FakeGrids grids;
  const float *x, *dy;
  float *dx;       ///< may be dy
  FakeSums *sums;  ///< of each row or column; null: none
};

/// dx = dy where lo < x < hi, else 0
struct ClipArgs {
  std::size_t count;
  float lo, hi;
  const float *x, *dy;
  float *dx;  ///< may be dy
};

/// Sums of dy where x <= lo, and where x >= hi.
struct ClipSums {
  double below, above;
};

/// The planes [channels][size] of an image: u = x * gain + shift, z = fake(clamp(u)).
struct PlanesArgs {
  std::size_t channels, size;
  const float *x;
  const float *gain, *shift;  ///< of each channel
  float lo, hi;               ///< of the clamp; infinities where there is none
  const FakeGrids *grid;      ///< one for all channels; null: z = clamp(u)
};

/// The moments of a channel: sums of x - shift and of its square, and the ends of x itself, infinities of the wrong
/// sign where there are none. NaN is passed over by these. Zeros have no sign.
struct PlanesMoments {
  double sum, squares;
  float min, max;
};

/// dv = dz where lo < u < hi and z is a step of the grid that u rounds to, else 0.
struct PlanesSums {
  double dv, dv_x;  ///< of dv, and of dv * x
};

/// dx = dv * dv_factor + x * x_factor + constant
struct PlanesBackwardArgs {
  PlanesArgs planes;
  const float *dz;
  const float *dv_factor, *x_factor, *constant;  ///< of each channel
  float *dx;                                     ///< may be dz
};

struct FakeKernel {
  const char *name;
  Isa isa;
  void (*quantize)(const FakeArgs &args);
  void (*backward)(const FakeBackwardArgs &args);
  ClipSums (*clip_backward)(const ClipArgs &args);
  void (*moments)(std::size_t channels, std::size_t size, const float *x, const float *shift,
                  PlanesMoments *of_channel);
  bool (*normalize)(const PlanesArgs &args, float *z);  ///< with a grid, whether every u is finite
  void (*normalize_sums)(const PlanesArgs &args, const float *dz, PlanesSums *sums);
  void (*normalize_backward)(const PlanesBackwardArgs &args);
};

std::span<const FakeKernel> fake_kernels();

/// The one for the instruction set in force.
const FakeKernel &fake_kernel();

}  // namespace qtn::kernels
