// SPDX-License-Identifier: Apache-2.0
// y[i][j]... = x[source[0][i]][source[1][j]]...: what padding and nearest resizing are, once each axis is solved.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.hpp"

namespace qtn::ops {

/// For each axis of the output, the index of the input that each of its positions takes; -1 takes the fill.
using AxisSources = std::vector<std::vector<std::int64_t>>;

/// Tensors of any strides and one dtype; `fill` points to one element (nullptr where no source is -1).
void gather_axes(const Tensor &y, const Tensor &x, const AxisSources &sources, const void *fill);

/// The gradient: contiguous dx, over what was there, from contiguous dy of float32. What took the fill goes nowhere.
void scatter_axes(const Tensor &dx, const Tensor &dy, const AxisSources &sources);

}  // namespace qtn::ops
