// SPDX-License-Identifier: Apache-2.0
// One row of a convolution's matrix for each output pixel: the taps' channels one after the other, zero points outside.
#pragma once

#include <cstdint>

#include "ops/common/window.hpp"
#include "runtime/step.hpp"

namespace qtn::runtime {

struct Im2Row {
  ops::Window window;  ///< over images
  Image x;
  std::int64_t channels;  ///< of the group
  std::uint8_t zero_point;

  std::size_t row_bytes() const { return static_cast<std::size_t>(window.taps_count() * channels); }

  /// Writes rows [first, first + count) of one image, `ld` bytes apart.
  void fill(std::uint8_t *rows, std::ptrdiff_t ld, const std::uint8_t *image, std::int64_t first,
            std::int64_t count) const;
};

}  // namespace qtn::runtime
