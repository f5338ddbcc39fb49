// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/moments.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "blas/gemm.hpp"

namespace qtn::quant {
namespace {

std::vector<double> mean_of_rows(const std::vector<float> &rows, std::int64_t depth, std::int64_t begin,
                                 std::int64_t end) {
  std::vector<double> mean(static_cast<std::size_t>(depth), 0);
  for (std::int64_t r = begin; r < end; ++r)
    for (std::int64_t i = 0; i < depth; ++i)
      mean[static_cast<std::size_t>(i)] += static_cast<double>(rows[static_cast<std::size_t>(r * depth + i)]);
  for (double &m : mean) m /= static_cast<double>(end - begin);
  return mean;
}

/// The sum of their products. Eight at a time, which become vectors.
double dot(const float *a, const double *b, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * b[i];
  return std::accumulate(sums, sums + kLanes, 0.0);
}

double shrunk_mean(std::span<const double> values, double significant) {
  const auto count = static_cast<double>(values.size());
  if (count < 2) return 0;
  double mean = 0, scatter = 0;
  for (const double v : values) mean += v / count;
  for (const double v : values) scatter += (v - mean) * (v - mean);
  if (mean == 0) return 0;
  // The scatter of a few parts is itself uncertain: the last factor is that of an F distribution's mean.
  const double of_mean = scatter / (count * (count - 1)) * (count + 1) / (count - 1);
  return mean * std::max(0.0, 1 - significant * of_mean / (mean * mean));
}

}  // namespace

void Moments::add(const Layer &layer, const float *weight, const std::vector<float> &x_rows,
                  const std::vector<float> &q_rows, std::int64_t count, bool products) {
  const std::int64_t depth = layer.depth, outputs = layer.outputs;
  const std::int64_t added = static_cast<std::int64_t>(x_rows.size()) / depth;
  rows += added;
  count = std::min(count, added);
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t begin = p * added / count, end = (p + 1) * added / count;
    parts.push_back({mean_of_rows(x_rows, depth, begin, end), mean_of_rows(q_rows, depth, begin, end)});
  }
  if (!products) return;
  qq.resize(static_cast<std::size_t>(depth * depth), 0);
  qy.resize(static_cast<std::size_t>(depth * outputs), 0);
  std::vector<float> y(static_cast<std::size_t>(added * outputs));
  blas::gemm(added, outputs, depth, 1.0f, x_rows.data(), {depth}, weight, {depth, true}, 0.0f, y.data(), outputs);
  blas::gemm(depth, depth, added, 1.0f, q_rows.data(), {depth, true}, q_rows.data(), {depth}, 1.0f, qq.data(), depth);
  blas::gemm(depth, outputs, added, 1.0f, q_rows.data(), {depth, true}, y.data(), {outputs}, 1.0f, qy.data(), outputs);
}

std::vector<double> mean_errors(const Layer &layer, const Moments &moments, const float *weight,
                                const float *quantized_weight) {
  // Means of so many inputs stay in the cache for so many outputs.
  constexpr std::size_t kInputs = 512, kOutputs = 16;
  const auto depth = static_cast<std::size_t>(layer.depth), outputs = static_cast<std::size_t>(layer.outputs);
  const std::size_t parts = moments.parts.size();
  std::vector<double> errors(outputs);
  const auto lanes = static_cast<std::size_t>(current_threads());
  std::vector<std::vector<double>> of_lanes(lanes);
  parallel_ranges(lanes, ceil_div(outputs, kOutputs), [&](std::size_t begin, std::size_t end, std::size_t lane) {
    std::vector<double> &of_parts = of_lanes[lane];
    for (std::size_t first = begin * kOutputs; first < std::min(outputs, end * kOutputs); first += kOutputs) {
      const std::size_t count = std::min(kOutputs, outputs - first);
      of_parts.assign(count * parts, 0.0);
      for (std::size_t i = 0; i < depth; i += kInputs) {
        const std::size_t inputs = std::min(kInputs, depth - i);
        for (std::size_t o = 0; o < count; ++o)
          for (std::size_t p = 0; p < parts; ++p)
            of_parts[o * parts + p] += dot(weight + (first + o) * depth + i, &moments.parts[p].x[i], inputs) -
                                       dot(quantized_weight + (first + o) * depth + i, &moments.parts[p].q[i], inputs);
      }
      for (std::size_t o = 0; o < count; ++o)
        errors[first + o] = shrunk_mean(std::span(of_parts).subspan(o * parts, parts), moments.significant);
    }
  });
  return errors;
}

}  // namespace qtn::quant
