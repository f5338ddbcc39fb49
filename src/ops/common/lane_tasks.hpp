// SPDX-License-Identifier: Apache-2.0
// Tasks in parallel that need memory of their own while they run, and sums that several of them make together.
#pragma once

#include "ops/common/elementwise.hpp"

namespace qtn::ops {

/// Where there are fewer tasks, images are cut into as many parts, each with a sum of its own.
inline constexpr std::int64_t kTasks = 16;

/// Calls body(task, memory of the lane) for all tasks, with `size` floats for each of current_threads() lanes.
template <class Body>
void for_tasks(std::int64_t tasks, float *memory, std::int64_t size, Body &&body) {
  parallel_ranges(static_cast<std::size_t>(current_threads()), static_cast<std::size_t>(tasks),
                  [&](std::size_t begin, std::size_t end, std::size_t lane) {
                    for (std::size_t task = begin; task < end; ++task)
                      body(static_cast<std::int64_t>(task), memory + static_cast<std::int64_t>(lane) * size);
                  });
}

/// Adds parts 1, 2 ... in their order to part 0, which is `to`; the others follow one another.
inline void add_parts(float *to, const float *others, std::int64_t parts, std::int64_t count) {
  if (parts == 1) return;
  for_blocks(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = 1; part < parts; ++part)
      for (std::int64_t i = begin; i < end; ++i) to[i] += others[(part - 1) * count + i];
  });
}

}  // namespace qtn::ops
