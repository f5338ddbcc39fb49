// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "base/stack_memory.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

kernels::Extent joined(const kernels::Extent &a, const kernels::Extent &b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max), a.finite && b.finite};
}

}  // namespace

kernels::Extent extent_of(const float *data, std::size_t count) {
  constexpr std::size_t kChunk = std::size_t{1} << 15;
  const auto extent = kernels::real_kernel().extent;
  const std::size_t chunks = ceil_div(count, kChunk), lanes = static_cast<std::size_t>(current_threads());
  StackMemory memory;
  auto ends = memory.list<kernels::Extent>(std::min(lanes, chunks));
  std::fill(ends.begin(), ends.end(), kernels::Extent{data[0] + 0.0f, data[0] + 0.0f, true});
  parallel_ranges(ends.size(), chunks, [&](std::size_t begin, std::size_t end, std::size_t lane) {
    const std::size_t from = begin * kChunk;
    ends[lane] = joined(ends[lane], extent(data + from, std::min(end * kChunk, count) - from));
  });
  return std::accumulate(ends.begin() + 1, ends.end(), ends[0], joined);
}

}  // namespace qtn::quant
