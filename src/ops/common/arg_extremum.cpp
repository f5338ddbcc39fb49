// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arg_extremum.hpp"

#include <cmath>

#include "kernels/real/real.hpp"
#include "ops/common/reduced_floats.hpp"

namespace qtn::ops {
namespace {

/// Which of equal elements counts, the first or the last: so they are visited from there.
struct Order {
  std::int64_t length;
  bool last;
  std::int64_t at(std::int64_t k) const { return last ? length - 1 - k : k; }
};

/// The place of `top`, which is among them.
std::int64_t place_of(float top, const float *x, std::int64_t step, const Order &order) {
  const bool none = std::isnan(top);
  for (std::int64_t k = 0;; ++k) {
    const float v = x[order.at(k) * step];
    if (v == top || (none && std::isnan(v))) return order.at(k);
  }
}

constexpr std::int64_t kTogether = kMostColumns;

void run_rows(bool largest, const float *x, std::int64_t rows, const Order &order, std::int64_t *y) {
  const auto extremes = kernels::rows_kernel().extremes;
  const float nothing = largest ? Larger::kOfNothing<float> : Smaller::kOfNothing<float>;
  const auto length = static_cast<std::size_t>(order.length);
  parallel_for(static_cast<std::size_t>((rows + kTogether - 1) / kTogether), [&](std::size_t block) {
    const std::int64_t first = static_cast<std::int64_t>(block) * kTogether, count = std::min(kTogether, rows - first);
    float tops[kTogether];
    std::fill_n(tops, count, nothing);
    const float *from = x + first * order.length;
    extremes({largest, from, static_cast<std::size_t>(count), order.length, length, tops});
    for (std::int64_t r = 0; r < count; ++r) y[first + r] = place_of(tops[r], from + r * order.length, 1, order);
  });
}

/// Columns of a plane, some at a time. The kernel takes the last NaN, and only largest ones.
void run_columns(bool largest, const float *x, std::int64_t inner, const Order &order, std::int64_t *y) {
  const auto take = kernels::real_kernel().take;
  for (std::int64_t first = 0; first < inner; first += kTogether) {
    const std::int64_t count = std::min(kTogether, inner - first);
    float tops[kTogether], negative[kTogether];
    std::int32_t best[kTogether];
    const auto line = [&](std::int64_t k) {
      const float *from = x + order.at(k) * inner + first;
      if (largest) return from;
      for (std::int64_t i = 0; i < count; ++i) negative[i] = -from[i];
      return static_cast<const float *>(negative);
    };
    std::copy_n(line(0), count, tops);
    std::fill_n(best, count, 0);
    for (std::int64_t k = 1; k < order.length; ++k)
      take({line(k), 1, static_cast<std::size_t>(count), static_cast<std::int32_t>(k), tops, best});
    for (std::int64_t i = 0; i < count; ++i)
      y[first + i] = std::isnan(tops[i]) ? place_of(tops[i], x + first + i, inner, order) : order.at(best[i]);
  }
}

}  // namespace

void run_arg_floats(bool largest, bool last, const Tensor &x, std::size_t axis, const Tensor &y) {
  const Order order{x.dim(axis), last};
  const std::int64_t inner = element_count(x.shape(), axis + 1, x.rank()), plane = order.length * inner;
  if (y.count() == 0) return;
  const auto *from = x.as<const float>();
  auto *to = y.as<std::int64_t>();
  if (inner == 1) return run_rows(largest, from, y.count(), order, to);
  parallel_for(static_cast<std::size_t>(x.count() / plane), [&](std::size_t index) {
    const auto outer = static_cast<std::int64_t>(index);
    run_columns(largest, from + outer * plane, inner, order, to + outer * inner);
  });
}

}  // namespace qtn::ops
