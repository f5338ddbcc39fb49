// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/rounding_problem.hpp"

#include "blas/gemm.hpp"

namespace qtn::quant {
namespace {

/// For each row, except for a constant: ŵ QQ ŵ' - 2 ŵ QY.
std::vector<double> losses(const RoundingProblem &p, std::span<const std::int64_t> integers) {
  const std::vector<float> w = reals(p, integers);
  const std::vector<float> slope = half_slope(p, w);
  std::vector<double> sums(static_cast<std::size_t>(p.outputs));
  for (std::int64_t r = 0; r < p.outputs; ++r)
    for (std::int64_t k = 0; k < p.depth; ++k)
      sums[static_cast<std::size_t>(r)] +=
          static_cast<double>(w[p.at(r, k)]) * (static_cast<double>(slope[p.at(r, k)]) -
                                                static_cast<double>(p.qy[static_cast<std::size_t>(k * p.outputs + r)]));
  return sums;
}

}  // namespace

std::vector<std::int64_t> nearest_integers(const RoundingProblem &p) {
  std::vector<std::int64_t> q(p.weights.size());
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = p.nearest(i);
  return q;
}

std::vector<float> reals(const RoundingProblem &p, std::span<const std::int64_t> integers) {
  std::vector<float> w(integers.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = p.real(i, integers[i]);
  return w;
}

std::vector<float> half_slope(const RoundingProblem &p, std::span<const float> rounded) {
  std::vector<float> slope(rounded.size());
  for (std::int64_t r = 0; r < p.outputs; ++r)
    for (std::int64_t k = 0; k < p.depth; ++k) slope[p.at(r, k)] = -p.qy[static_cast<std::size_t>(k * p.outputs + r)];
  blas::gemm(p.outputs, p.depth, p.depth, 1.0f, rounded.data(), {p.depth}, p.qq.data(), {p.depth}, 1.0f, slope.data(),
             p.depth);
  return slope;
}

void keep_better_rows(const RoundingProblem &p, std::vector<std::int64_t> &integers) {
  const std::vector<std::int64_t> nearest = nearest_integers(p);
  const std::vector<double> before = losses(p, nearest), after = losses(p, integers);
  for (std::size_t i = 0; i < integers.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(p.depth);
    if (!(after[row] < before[row])) integers[i] = nearest[i];
  }
}

}  // namespace qtn::quant
