// SPDX-License-Identifier: Apache-2.0
// Keys that a mask hides from some queries, as causal masks and padding do. Their shares are 0 whatever they hold, so
// that leaving them out changes no bit of a result.
#pragma once

#include <optional>
#include <span>

#include "kernels/grid/grid.hpp"
#include "runtime/steps/attention_products.hpp"

namespace qtn::runtime {

/// What a mask does to the scores of some queries: those that are not kept become `filler`, then `addend` is added.
struct ScoreMask {
  const std::uint8_t *chosen = nullptr;  ///< null: all are kept
  std::ptrdiff_t chosen_row = 0;         ///< elements from row to row, here and below
  bool keeps = true;                     ///< what `chosen` is for a score that is kept: not zero, or zero
  float filler = 0;
  const float *addend = nullptr;  ///< null: nothing
  std::ptrdiff_t addend_row = 0;

  explicit operator bool() const { return chosen || addend; }
};

/// Those of a head. Keys and values are looked at only where a mask hides some.
class HiddenKeys {
 public:
  HiddenKeys(std::span<const HeadPart> parts, const HeadSizes &sizes, const kernels::GridKernel &grid)
      : parts_(parts), sizes_(sizes), grid_(grid) {}

  /// How many keys come before those that are hidden from all of `count` queries: all, or a multiple of kKeysAtOnce.
  /// Scores are products of queries and keys times `factor`.
  std::size_t in_sight(const HeadMatrix &queries, std::size_t count, float factor, const ScoreMask &mask);

 private:
  float peak(const HeadMatrix &m, std::size_t rows, std::size_t columns) const;
  float key_peak();

  std::span<const HeadPart> parts_;
  const HeadSizes &sizes_;
  const kernels::GridKernel &grid_;
  std::optional<float> key_peak_;
};

}  // namespace qtn::runtime
