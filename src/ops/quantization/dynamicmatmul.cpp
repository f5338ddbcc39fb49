// SPDX-License-Identifier: Apache-2.0
// The product of two activations, of which each row on the left and each column on the right comes to 8 bits on the grid
// that it gives itself: uint8 on the left, int8 around 0 on the right. Attention is made of two of these.
#include <numeric>

#include "base/counted.hpp"
#include "kernels/kernel.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/integer_linear.hpp"
#include "ops/common/matrix_product.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{kCenteredAttr, AttrSpec::kInt}};

Types infer(const Call &call) {
  for (const std::size_t i : {0, 1}) require_float(kDynamicMatMul.name, i == 0 ? "a" : "b", call.in(i));
  for (const std::size_t i : {0, 1})
    if (call.in(i)->rank() < 2)
      fail(QTN_ESHAPE, kDynamicMatMul.name, ": ", i == 0 ? "a " : "b ", to_string(call.in(i)->shape()),
           " is no matrix");
  return {{QTN_FLOAT32, matrix_product(kDynamicMatMul.name, call).shape}};
}

struct Columns {
  CountedVector<std::int8_t> q;  ///< [n][k]
  std::vector<float> scales;
};

Columns columns_of(const float *b, std::size_t k, std::size_t n, bool centered) {
  CountedVector<float> moved;
  if (centered) {
    for (std::size_t i = 0; i < k; ++i) {
      const float *row = b + i * n;
      const double sum = std::accumulate(row, row + n, 0.0);
      const auto mean = static_cast<float>(sum / static_cast<double>(n));
      for (std::size_t j = 0; j < n; ++j) moved.push_back(row[j] - mean);
    }
    b = moved.data();
  }
  CountedVector<std::int8_t> rows(k * n);
  Columns columns{CountedVector<std::int8_t>(k * n), std::vector<float>(n)};
  kernels::rows_kernel().column_bytes({b, static_cast<std::ptrdiff_t>(n), k, n, rows.data(), columns.scales.data()});
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < n; ++j) columns.q[j * k + i] = rows[i * n + j];
  return columns;
}

void multiply(const float *a, const Columns &b, const MatrixProduct &p, float *y) {
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n), k = static_cast<std::size_t>(p.k);
  CountedVector<std::uint8_t> q(m * k);
  std::vector<float> scales(m), multipliers(n);
  std::vector<std::int32_t> zeros(m);
  kernels::rows_kernel().row_bytes(
      {a, static_cast<std::ptrdiff_t>(k), m, k, nullptr, q.data(), scales.data(), zeros.data(), nullptr});
  const kernels::DotKernel &dot = kernels::choose(kernels::dot_kernels(), isa());
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) multipliers[j] = scales[i] * b.scales[j];
    multiply_columns(dot, {.m = 1,
                           .n = n,
                           .k = k,
                           .x = &q[i * k],
                           .ldx = p.k,
                           .w = b.q.data(),
                           .ldw = p.k,
                           .signed_w = true,
                           .zx = zeros[i],
                           .zw = nullptr,
                           .x_sum = nullptr,
                           .bias = nullptr,
                           .multiplier = multipliers.data(),
                           .addend = nullptr,
                           .y = y + i * n,
                           .ldy = p.n});
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const MatrixProduct p = matrix_product(kDynamicMatMul.name, call);
  const bool centered = call.attrs.get_int(kCenteredAttr, 0) != 0;
  const float *a = call.in(0)->as<const float>(), *b = call.in(1)->as<const float>();
  auto *y = outputs[0].as<float>();
  if (p.k == 0) return static_cast<void>(std::fill_n(y, outputs[0].count(), 0.0f));
  for_batches(p, [&](std::int64_t i, std::int64_t a_at, std::int64_t b_at) {
    const Columns columns =
        columns_of(b + b_at * p.k * p.n, static_cast<std::size_t>(p.k), static_cast<std::size_t>(p.n), centered);
    multiply(a + a_at * p.m * p.k, columns, p, y + i * p.m * p.n);
  });
}

}  // namespace

const OpDef kDynamicMatMul{.name = "DynamicMatMul",
                           .domain = kOwnDomain,
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .max_outputs = 1,
                           .attrs = kAttrs,
                           .any_type = true,  // files have nodes in its place that make float32
                           .infer = infer,
                           .run = run,
                           .work = work_of_product};

}  // namespace qtn::ops
