// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/size.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

/// Contiguous tensors side by side, uninitialised, until the next take().
template <std::size_t N>
std::array<Tensor, N> scratch_tensors(Scratch &scratch, const std::array<TensorType, N> &types) {
  std::array<std::size_t, N> places;
  std::size_t size = 0;
  for (std::size_t i = 0; i < N; ++i) {
    places[i] = size;
    const Size bytes = Size(element_count(types[i].shape)) * dtype_size(types[i].dtype);
    size = (Size(size) + round_up(bytes.value(), kAlignment)).value();
  }
  std::byte *memory = scratch.take(size);
  std::array<Tensor, N> tensors;
  for (std::size_t i = 0; i < N; ++i)
    tensors[i] =
        Tensor(types[i].dtype, types[i].shape, contiguous_strides(types[i].shape), memory + places[i], nullptr);
  return tensors;
}

}  // namespace qtn::ops
