// SPDX-License-Identifier: Apache-2.0
// Keys that what is added to scores hides from some queries, as causal masks and padding do. Their shares are 0 whatever
// they hold, so that leaving them out changes no bit of a result.
#pragma once

#include <optional>
#include <span>

#include "kernels/grid/grid.hpp"
#include "runtime/steps/attention_products.hpp"

namespace qtn::runtime {

/// Those of a head. Keys and values are looked at only where a mask hides some.
class HiddenKeys {
 public:
  HiddenKeys(std::span<const HeadPart> parts, const HeadSizes &sizes, const kernels::GridKernel &grid)
      : parts_(parts), sizes_(sizes), grid_(grid) {}

  /// How many keys come before those that are hidden from all of `count` queries: all, or a multiple of kKeysAtOnce.
  /// The change has an addend.
  std::size_t in_sight(const HeadMatrix &queries, std::size_t count, const ScoreChange &change);

 private:
  float peak(const HeadMatrix &m, std::size_t rows, std::size_t columns) const;
  float key_peak();

  std::span<const HeadPart> parts_;
  const HeadSizes &sizes_;
  const kernels::GridKernel &grid_;
  std::optional<float> key_peak_;
};

}  // namespace qtn::runtime
