// SPDX-License-Identifier: Apache-2.0
#include "graph/weight_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "graph/integer.hpp"

namespace qtn::graph {
namespace {

/// By sums that do not wait for one another.
template <class T>
double sum_of_magnitudes(const T *values, std::int64_t count) {
  constexpr std::int64_t kSums = 8;
  std::array<double, kSums> sums = {};
  for (std::int64_t i = 0; i < count; ++i)
    sums[static_cast<std::size_t>(i % kSums)] += static_cast<double>(std::abs(values[i]));
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class T>
std::vector<double> magnitudes(const Tensor &weight, std::size_t axis) {
  const T *from = weight.as<const T>();
  const std::int64_t outer = element_count(weight.shape(), 0, axis),
                     inner = element_count(weight.shape(), axis + 1, weight.rank());
  std::vector<double> sums(static_cast<std::size_t>(weight.dim(axis)), 0.0);
  for (std::int64_t o = 0; o < outer; ++o)
    for (double &sum : sums) {
      sum += sum_of_magnitudes(from, inner);
      from += inner;
    }
  return sums;
}

}  // namespace

std::vector<double> weight_magnitudes(const Tensor &weight, std::size_t axis) {
  const Tensor plain = weight.to_contiguous();
  return plain.dtype() == QTN_INT8 ? magnitudes<std::int8_t>(plain, axis) : magnitudes<float>(plain, axis);
}

std::int64_t weight_depth(const Node &node, const Shape &weight) {
  return element_count(weight) / std::max<std::int64_t>(1, output_channels(node, weight));
}

}  // namespace qtn::graph
