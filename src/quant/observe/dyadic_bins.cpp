// SPDX-License-Identifier: Apache-2.0
#include "quant/observe/dyadic_bins.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "quant/observe/counting.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

std::int64_t index_of(float value, int exponent) {
  return static_cast<std::int64_t>(std::floor(std::ldexp(static_cast<double>(value), -exponent)));
}

/// The finest bins with which [min, max] takes at most `limit` of them, and indexes stay small.
int exponent_for(float min, float max, std::int64_t limit) {
  int exponent = std::ilogb(std::max(std::fabs(min), std::fabs(max))) - 30;
  while (index_of(max, exponent) - index_of(min, exponent) >= limit) ++exponent;
  return exponent;
}

struct Nonzero {
  float min, max;       ///< of the values other than zero; min above max where there are none
  std::uint64_t zeros;  ///< how many others there are
};

/// Without branches on values, which nobody could predict.
Nonzero nonzero(std::span<const float> values) {
  const kernels::Extent all = extent_of(values.data(), values.size());
  std::uint32_t least = UINT32_MAX;  // magnitude, less one so that zero is the largest
  std::uint64_t zeros = 0;
  for (const float v : values) {
    const std::uint32_t magnitude = (std::bit_cast<std::uint32_t>(v) & 0x7fffffff) - 1;
    least = magnitude < least ? magnitude : least;
    zeros += magnitude == UINT32_MAX;
  }
  if (zeros == values.size()) return {1, -1, zeros};
  const auto nearest = std::bit_cast<float>(least + 1);
  return {all.min < 0 ? all.min : nearest, all.max > 0 ? all.max : -nearest, zeros};
}

}  // namespace

DyadicBins widened(const DyadicBins &bins, float min, float max, std::int64_t limit) {
  DyadicBins wide;
  wide.min = bins.counts.empty() ? min : std::min(min, bins.min);
  wide.max = bins.counts.empty() ? max : std::max(max, bins.max);
  wide.exponent = exponent_for(wide.min, wide.max, limit);
  wide.first = index_of(wide.min, wide.exponent);
  wide.counts.resize(static_cast<std::size_t>(index_of(wide.max, wide.exponent) - wide.first + 1));
  for (std::size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] == 0) continue;
    const int shift = std::min(wide.exponent - bins.exponent, 63);
    const std::int64_t at = (bins.first + static_cast<std::int64_t>(i)) >> shift;
    wide.counts[static_cast<std::size_t>(at - wide.first)] += bins.counts[i];
  }
  return wide;
}

std::uint64_t add(DyadicBins &bins, std::span<const float> values, std::int64_t limit) {
  const Nonzero seen = nonzero(values);
  if (seen.min > seen.max) return seen.zeros;
  DyadicBins wide = widened(bins, seen.min, seen.max, limit);
  const auto slot = [scale = std::ldexp(1.0, -wide.exponent), first = static_cast<double>(wide.first),
                     count = static_cast<double>(wide.counts.size())](float v) {
    const double at = static_cast<double>(v) * scale;  // below 2^31, whatever v
    const auto towards_zero = static_cast<double>(static_cast<std::int32_t>(at));
    const double bin = towards_zero - (at < towards_zero ? 1.0 : 0.0) - first;
    return static_cast<std::int32_t>(bin >= 0 && bin < count ? bin + 1 : 0.0);
  };
  count_values(values, wide.counts, slot, kAsGuessed);
  if (slot(0) > 0) wide.counts[static_cast<std::size_t>(slot(0) - 1)] -= seen.zeros;
  bins = std::move(wide);
  return seen.zeros;
}

void add(DyadicBins &bins, const DyadicBins &more, std::int64_t limit) {
  if (more.counts.empty()) return;
  DyadicBins wide = widened(bins, more.min, more.max, limit);
  const DyadicBins same = widened(more, wide.min, wide.max, limit);
  for (std::size_t i = 0; i < wide.counts.size(); ++i) wide.counts[i] += same.counts[i];
  bins = std::move(wide);
}

}  // namespace qtn::quant
