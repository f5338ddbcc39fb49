// SPDX-License-Identifier: Apache-2.0
// OpDef::work of operators that sum products, or look at windows.
#pragma once

#include <algorithm>

#include "ops/op.hpp"

namespace qtn::ops {

/// A product of matrices: as many as input 0 has columns, or rows where the attributes say that it is transposed.
inline double work_of_product(const Call &call) {
  const Tensor &a = *call.in(0);
  if (a.rank() == 0) return 1;
  const bool transposed = a.rank() == 2 && (call.attrs.get_int("transA", 0) != 0);
  return static_cast<double>(a.dim(transposed ? 0 : a.rank() - 1));
}

/// A convolution, whose filters are the largest of its other inputs: as many as a filter has weights.
inline double work_of_convolution(const Call &call) {
  double work = 1;
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (const Tensor *t = call.in(i); t && t->rank() > 0 && t->dim(0) > 0)
      work = std::max(work, static_cast<double>(t->count()) / static_cast<double>(t->dim(0)));
  return work;
}

/// A pool: as many as a window has places.
inline double work_of_pool(const Call &call) {
  double places = 1;
  for (const std::int64_t k : call.attrs.get_ints("kernel_shape")) places *= static_cast<double>(k);
  return std::min(places, static_cast<double>(call.in(0)->count()));
}

}  // namespace qtn::ops
