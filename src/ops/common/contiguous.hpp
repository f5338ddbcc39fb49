// SPDX-License-Identifier: Apache-2.0
// Elements moved as bytes, through contiguous tensors: what their type is does not matter, only how wide they are.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tensor.hpp"

namespace qtn::ops {

/// The unsigned integer as wide as T.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// Calls f(T{}) with an unsigned type as wide as elements are.
template <class F>
void dispatch_width(qdtype dtype, F &&f) {
  switch (dtype_size(dtype)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

/// Calls body(contiguous tensor), whose elements then become those of y.
template <class Body>
void through_contiguous(const Tensor &y, Body &&body) {
  if (y.contiguous()) return body(y);
  const Tensor whole(y.dtype(), y.shape());
  body(whole);
  copy_elements(y, whole);
}

}  // namespace qtn::ops
