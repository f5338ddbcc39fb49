// SPDX-License-Identifier: Apache-2.0
// Rows of a cache of keys or values: floats, or integers around 0 that stand for them.
#pragma once

#include "core/tensor.hpp"

namespace qtn::ops {

struct CacheRows {
  std::int64_t features;
  std::int64_t bits;     ///< 8: int8; 4: pairs in a byte, the first in its low half, 8 more than they are; 0: floats
  const Tensor *scales;  ///< of integers, float32: one, or one for each feature of each head

  /// Bytes of a row, whose features are an even number under 4 bits.
  std::size_t bytes() const;
  /// The integers next to the floats of a head, or these themselves.
  void write(std::int64_t head, const float *from, std::byte *to) const;
  void read(std::int64_t head, const std::byte *from, float *to) const;

 private:
  template <class Body>
  void for_parts(std::int64_t head, const Body &body) const;
};

}  // namespace qtn::ops
