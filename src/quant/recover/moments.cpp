// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/moments.hpp"

#include "blas/gemm.hpp"

namespace qtn::quant {
namespace {

void add_rows(std::vector<double> &sums, const std::vector<float> &rows, std::int64_t depth) {
  sums.resize(static_cast<std::size_t>(depth), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i % sums.size()] += static_cast<double>(rows[i]);
}

}  // namespace

void Moments::add(const Layer &layer, const std::vector<float> &weight, const std::vector<float> &x_rows,
                  const std::vector<float> &q_rows, bool products) {
  const std::int64_t depth = layer.depth, outputs = layer.outputs;
  const std::int64_t count = static_cast<std::int64_t>(x_rows.size()) / depth;
  rows += count;
  add_rows(x, x_rows, depth);
  add_rows(q, q_rows, depth);
  if (!products) return;
  qq.resize(static_cast<std::size_t>(depth * depth), 0);
  qy.resize(static_cast<std::size_t>(depth * outputs), 0);
  std::vector<float> y(static_cast<std::size_t>(count * outputs));
  blas::gemm(count, outputs, depth, 1.0f, x_rows.data(), {depth}, weight.data(), {depth, true}, 0.0f, y.data(),
             outputs);
  blas::gemm(depth, depth, count, 1.0f, q_rows.data(), {depth, true}, q_rows.data(), {depth}, 1.0f, qq.data(), depth);
  blas::gemm(depth, outputs, count, 1.0f, q_rows.data(), {depth, true}, y.data(), {outputs}, 1.0f, qy.data(), outputs);
}

}  // namespace qtn::quant
