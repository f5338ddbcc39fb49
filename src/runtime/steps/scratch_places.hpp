// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/memory.hpp"
#include "base/size.hpp"

namespace qtn::runtime {

/// Pieces of the scratch of a lane, one behind the other and aligned as all scratch is.
struct ScratchPlaces {
  std::size_t end = 0;  ///< in bytes

  /// Where a piece of so many bytes is.
  std::size_t take(std::size_t size) {
    const std::size_t at = end;
    end += round_up(size, kAlignment);
    return at;
  }
};

}  // namespace qtn::runtime
