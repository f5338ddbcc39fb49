// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {

IntegerRange integers(const ObserverSettings &settings) {
  return settings.choose.range.value_or(integer_range(settings.dtype));
}

namespace {

/// A tensor as [outer, dim, inner] around the axis of its ranges; per tensor all of it is inner.
struct Around {
  std::size_t outer = 1, dim = 1, inner;
};

Around around_axis(const Tensor &x, const ObserverSettings &settings) {
  if (is_per_tensor(settings.scheme)) return {1, 1, static_cast<std::size_t>(x.count())};
  const auto axis = static_cast<std::size_t>(settings.axis);
  if (axis >= x.rank())
    fail(QTN_ESHAPE, "observer: axis ", axis, " is not one of a tensor of shape ", to_string(x.shape()));
  return {static_cast<std::size_t>(element_count(x.shape(), 0, axis)), static_cast<std::size_t>(x.dim(axis)),
          static_cast<std::size_t>(element_count(x.shape(), axis + 1, x.rank()))};
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void widen_columns(const float *row, std::size_t count, float *mins, float *maxs) {
  for (std::size_t i = 0; i < count; ++i) {
    mins[i] = std::min(mins[i], row[i]);
    maxs[i] = std::max(maxs[i], row[i]);
  }
}

/// The ranges of the columns of a row-major matrix, some of them by each thread. Zeros get the sign +.
Ranges measure_columns(const float *data, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kColumns = 1024;
  Ranges ranges{std::vector<float>(columns, kInfinity), std::vector<float>(columns, -kInfinity)};
  parallel_for(ceil_div(columns, kColumns), [&](std::size_t part) {
    const std::size_t first = part * kColumns, count = std::min(kColumns, columns - first);
    float *mins = ranges.mins.data() + first, *maxs = ranges.maxs.data() + first;
    for (std::size_t r = 0; r < rows; ++r) widen_columns(data + r * columns + first, count, mins, maxs);
    for (std::size_t i = 0; i < count; ++i) {
      mins[i] += 0.0f;
      maxs[i] += 0.0f;
    }
  });
  return ranges;
}

/// One range for each run of `length` of them.
Ranges joined_runs(const Ranges &ranges, std::size_t length) {
  Ranges joined;
  for (auto min = ranges.mins.begin(), max = ranges.maxs.begin(); min != ranges.mins.end();
       min += static_cast<std::ptrdiff_t>(length), max += static_cast<std::ptrdiff_t>(length)) {
    joined.mins.push_back(*std::min_element(min, min + static_cast<std::ptrdiff_t>(length)));
    joined.maxs.push_back(*std::max_element(max, max + static_cast<std::ptrdiff_t>(length)));
  }
  return joined;
}

Ranges measure_channels(const float *data, const Around &around) {
  constexpr std::size_t kShort = 64;  // elements in a row, which are not worth a call
  if (around.inner < kShort) {
    const Ranges columns = measure_columns(data, around.outer, around.dim * around.inner);
    return around.inner == 1 ? columns : joined_runs(columns, around.inner);
  }
  Ranges ranges;
  for (std::size_t c = 0; c < around.dim; ++c) {
    kernels::Extent all = extent_of(data + c * around.inner, around.inner);
    for (std::size_t o = 1; o < around.outer; ++o) {
      const kernels::Extent row = extent_of(data + (o * around.dim + c) * around.inner, around.inner);
      all.min = std::min(all.min, row.min);
      all.max = std::max(all.max, row.max);
    }
    ranges.mins.push_back(all.min);
    ranges.maxs.push_back(all.max);
  }
  return ranges;
}

/// In the order of a quantizer's scales: a row-major grid of [outer, blocks, inner].
Ranges measure_blocks(const float *data, const Around &around, std::size_t block_size) {
  const std::size_t blocks = ceil_div(around.dim, block_size), count = around.outer * blocks * around.inner;
  Ranges ranges{std::vector<float>(count, kInfinity), std::vector<float>(count, -kInfinity)};
  const auto extent = kernels::real_kernel().extent;
  parallel_for(around.outer * blocks, [&](std::size_t task) {
    const std::size_t first = task % blocks * block_size, rows = std::min(block_size, around.dim - first);
    const float *from = data + (task / blocks * around.dim + first) * around.inner;
    if (around.inner == 1) {
      const kernels::Extent block = extent(from, rows);
      ranges.mins[task] = block.min;
      ranges.maxs[task] = block.max;
      return;
    }
    float *mins = ranges.mins.data() + task * around.inner, *maxs = ranges.maxs.data() + task * around.inner;
    for (std::size_t r = 0; r < rows; ++r) widen_columns(from + r * around.inner, around.inner, mins, maxs);
  });
  return ranges;
}

}  // namespace

Ranges measure(const Tensor &x, const ObserverSettings &settings) {
  const auto *data = x.as<const float>();
  const Around around = around_axis(x, settings);
  if (is_per_block(settings.scheme))
    return measure_blocks(data, around, static_cast<std::size_t>(settings.choose.block_size));
  return measure_channels(data, around);
}

void check_channels(const Ranges &seen, const Ranges &now) {
  if (seen.size() != now.size())
    fail(QTN_ESHAPE, "observer: the tensor has ", now.size(), " channels or blocks, those before had ", seen.size());
}

void widen(Ranges &seen, const Ranges &now) {
  if (seen.size() == 0) {
    // Assigned at once, the first of two vectors would stay where there is no memory for the second.
    Ranges copy = now;
    seen = std::move(copy);
    return;
  }
  check_channels(seen, now);
  for (std::size_t c = 0; c < now.size(); ++c) {
    seen.mins[c] = std::min(seen.mins[c], now.mins[c]);
    seen.maxs[c] = std::max(seen.maxs[c], now.maxs[c]);
  }
}

void move_towards(Ranges &mean, const Ranges &now, float weight) {
  check_channels(mean, now);
  const auto moved = [weight](float from, float to) {
    const float step = weight * (to - from);
    if (std::isfinite(step)) return from + step;
    // Two floats may lie further apart than the largest one.
    return static_cast<float>(from + static_cast<double>(weight) * (static_cast<double>(to) - from));
  };
  for (std::size_t c = 0; c < now.size(); ++c) {
    mean.mins[c] = moved(mean.mins[c], now.mins[c]);
    // Rounding may change the order of what lies a last bit apart.
    mean.maxs[c] = std::max(mean.mins[c], moved(mean.maxs[c], now.maxs[c]));
  }
}

void add_magnitude(Ranges &ranges, float amax, bool negative) {
  ranges.mins.push_back(negative ? -amax : 0);
  ranges.maxs.push_back(amax);
}

QuantizerPtr choose_from(const Ranges &ranges, const ObserverSettings &settings) {
  const std::vector<double> mins(ranges.mins.begin(), ranges.mins.end()), maxs(ranges.maxs.begin(), ranges.maxs.end());
  return choose_quantizer(settings.dtype, settings.scheme, settings.axis, mins, maxs, settings.choose);
}

void write_ranges(ByteWriter &out, const Ranges &ranges) {
  out.f32s(ranges.mins);
  out.f32s(ranges.maxs);
}

Ranges read_ranges(ByteReader &in, const ObserverSettings &settings) {
  Ranges ranges;
  ranges.mins = in.f32s();
  ranges.maxs = in.f32s();
  if (ranges.mins.size() != ranges.maxs.size()) in.broken("as many minima as maxima must follow");
  if (is_per_tensor(settings.scheme) && ranges.size() > 1) in.broken("a per-tensor observer has one range");
  for (std::size_t c = 0; c < ranges.size(); ++c)
    if (!std::isfinite(ranges.mins[c]) || !std::isfinite(ranges.maxs[c]) || ranges.mins[c] > ranges.maxs[c])
      in.broken("a range is not finite and ordered");
  return ranges;
}

}  // namespace qtn::quant
