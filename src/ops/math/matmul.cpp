// SPDX-License-Identifier: Apache-2.0
#include "blas/gemm.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/integer_product.hpp"
#include "ops/common/matrix_product.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &a = *call.in(0);
  require_dtype("MatMul", "a", a, {QTN_FLOAT32, QTN_FLOAT64, QTN_INT32, QTN_INT64, QTN_UINT32, QTN_UINT64});
  require_same_dtype("MatMul", a, *call.in(1));
  return {{a.dtype(), matrix_product("MatMul", call).shape}};
}

/// y = a b of integers, which wrap around.
template <class T>
void multiply_integers(const MatrixProduct &p, const T *a, const T *b, T *y) {
  std::fill_n(y, p.m * p.n, T(0));
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.k; ++j)
      for (std::int64_t column = 0; column < p.n; ++column) y[i * p.n + column] += a[i * p.k + j] * b[j * p.n + column];
}

/// The matrices of all batches; one product where b has no batch, since then a's rows follow one another.
template <class T>
void multiply_reals(const MatrixProduct &p, const T *a, const T *b, T *y) {
  if (p.b_batch.empty())
    return blas::gemm(element_count(p.batch) * p.m, p.n, p.k, T(1), a, {p.k}, b, {p.n}, T(0), y, p.n);
  for_batches(p, [&](std::int64_t i, std::int64_t a_at, std::int64_t b_at) {
    blas::gemm(p.m, p.n, p.k, T(1), a + a_at * p.m * p.k, {p.k}, b + b_at * p.k * p.n, {p.n}, T(0), y + i * p.m * p.n,
               p.n);
  });
}

template <class T>
void multiply(const MatrixProduct &p, const T *a, const T *b, T *y) {
  if constexpr (std::is_integral_v<T>)
    return for_batches(p, [&](std::int64_t i, std::int64_t a_at, std::int64_t b_at) {
      multiply_integers(p, a + a_at * p.m * p.k, b + b_at * p.k * p.n, y + i * p.m * p.n);
    });
  else
    return multiply_reals(p, a, b, y);
}

template <class T>
void multiply_as(const Call &call, const Tensor &y) {
  multiply(matrix_product("MatMul", call), call.in(0)->as<const T>(), call.in(1)->as<const T>(), y.as<T>());
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  if (y.dtype() == QTN_FLOAT32) return multiply_as<float>(call, y);
  if (y.dtype() == QTN_FLOAT64) return multiply_as<double>(call, y);
  dtype_size(y.dtype()) == 4 ? multiply_as<std::uint32_t>(call, y) : multiply_as<std::uint64_t>(call, y);
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  const MatrixProduct p = matrix_product("MatMul", call);
  const std::size_t columns = b.rank() - 1;
  if (b.rank() == 1 && b.quantizer() && b.quantizer()->per_channel()) return false;
  if (!is_integer_product(a, b, columns, nullptr, output)) return false;
  const CountedVector<double> x = centered_doubles(a, 0), w = centered_doubles(b, columns);
  CountedVector<double> sums(static_cast<std::size_t>(output.count()));
  multiply(p, x.data(), w.data(), sums.data());
  store_products(output, sums, 1, *a.quantizer(), *b.quantizer(), nullptr, static_cast<std::size_t>(p.n), clamp);
  return true;
}

/// Where a matrix is read by several batches, its gradient is the sum of theirs, in their order.
void backward(const Backward &run, std::span<const Tensor> dx) {
  const MatrixProduct p = matrix_product("MatMul", run.call);
  const float *a = run.call.in(0)->as<const float>(), *b = run.call.in(1)->as<const float>();
  const float *dy = run.dy[0].as<const float>();
  const std::int64_t rows = element_count(p.batch) * p.m;
  float *da = dx[0].as<float>(), *db = dx[1].as<float>();
  if (p.b_batch.empty()) {
    if (da) blas::gemm(rows, p.k, p.n, 1.0f, dy, {p.n}, b, {p.n, true}, 0.0f, da, p.k);
    if (db) blas::gemm(p.k, p.n, rows, 1.0f, a, {p.k, true}, dy, {p.n}, 0.0f, db, p.n);
    return;
  }
  if (da) std::fill_n(da, dx[0].count(), 0.0f);
  if (db) std::fill_n(db, dx[1].count(), 0.0f);
  for_batches(p, [&](std::int64_t i, std::int64_t a_at, std::int64_t b_at) {
    const float *slopes = dy + i * p.m * p.n;
    a_at *= p.m * p.k;
    b_at *= p.k * p.n;
    if (da) blas::gemm(p.m, p.k, p.n, 1.0f, slopes, {p.n}, b + b_at, {p.n, true}, 1.0f, da + a_at, p.k);
    if (db) blas::gemm(p.k, p.n, p.m, 1.0f, a + a_at, {p.k, true}, slopes, {p.n}, 1.0f, db + b_at, p.n);
  });
}

constexpr ProductForm kProduct{.has_bias = false, .channel_axis = [](const Attrs &) -> std::size_t { return 1; }};

}  // namespace

const OpDef kMatMul{.name = "MatMul",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = {},
                    .infer = infer,
                    .run = run,
                    .run_quantized = run_quantized,
                    .backward = backward,
                    .keeps = {.inputs = kAllInputs},
                    .product = &kProduct,
                    .weights = {0, 2},
                    .work = work_of_product};

}  // namespace qtn::ops
