// SPDX-License-Identifier: Apache-2.0
#include "blas/gemm.hpp"

#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/integer_product.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"alpha", AttrSpec::kFloat}, {"beta", AttrSpec::kFloat}, {"transA", AttrSpec::kInt}, {"transB", AttrSpec::kInt}};

struct Product {
  std::int64_t m, n, k;
  bool trans_a, trans_b;
  blas::Operand a_form() const { return {trans_a ? m : k, trans_a}; }
  blas::Operand b_form() const { return {trans_b ? k : n, trans_b}; }
};

Product product_of(const Call &call) {
  const Shape &a = call.in(0)->shape(), &b = call.in(1)->shape();
  const bool ta = call.attrs.get_int("transA", 0) != 0, tb = call.attrs.get_int("transB", 0) != 0;
  if (a.size() != 2 || b.size() != 2)
    fail(QTN_ESHAPE, "Gemm: A ", to_string(a), " and B ", to_string(b), " must be matrices");
  const Product p{a[ta], b[!tb], a[!ta], ta, tb};
  if (b[tb] != p.k)
    fail(QTN_ESHAPE, "Gemm: B wants ", b[tb], " input features, A has ", p.k, " (A ", to_string(a),
         ta ? " transposed" : "", ", B ", to_string(b), tb ? " transposed" : "", ")");
  return p;
}

Types infer(const Call &call) {
  const Tensor &a = *call.in(0);
  require_dtype("Gemm", "A", a, {QTN_FLOAT32, QTN_FLOAT64, QTN_INT32, QTN_INT64, QTN_UINT32, QTN_UINT64});
  require_same_dtype("Gemm", a, *call.in(1));
  if (call.in(2)) require_same_dtype("Gemm", a, *call.in(2));
  const Product p = product_of(call);
  const Shape shape{p.m, p.n};
  if (const Tensor *c = call.in(2); c && !(c->rank() <= 2 && broadcast(shape, c->shape(), "Gemm: C") == shape))
    fail(QTN_ESHAPE, "Gemm: C ", to_string(c->shape()), " does not broadcast to ", to_string(shape));
  return {{a.dtype(), shape}};
}

/// alpha A B of integers: sums wrap around, factors that are no integers round towards zero.
template <class T>
void multiply_integers(const Product &p, double alpha, const T *a, const T *b, T *y) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      std::uint64_t sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += static_cast<std::uint64_t>(a[p.trans_a ? l * p.m + i : i * p.k + l]) *
               static_cast<std::uint64_t>(b[p.trans_b ? j * p.k + l : l * p.n + j]);
      const auto product = static_cast<T>(sum);
      y[i * p.n + j] = alpha == 1 ? product : convert<T>(alpha * static_cast<double>(product));
    }
}

template <class T>
void run_as(const Call &call, const Tensor &y) {
  const Product p = product_of(call);
  const double alpha = call.attrs.get_float("alpha", 1), beta = call.attrs.get_float("beta", 1);
  const T *a = call.in(0)->as<const T>(), *b = call.in(1)->as<const T>();
  if constexpr (std::is_floating_point_v<T>)
    blas::gemm(p.m, p.n, p.k, static_cast<T>(alpha), a, p.a_form(), b, p.b_form(), T(0), y.as<T>(), p.n);
  else
    multiply_integers(p, alpha, a, b, y.as<T>());
  if (!call.in(2) || beta == 0) return;
  map_broadcast<T, T>(y, *call.in(2), y.shape(), y.as<T>(), [beta](T v, T c) {
    if constexpr (std::is_floating_point_v<T>)
      return v + static_cast<T>(beta) * c;
    else
      return static_cast<T>(static_cast<std::uint64_t>(v) +
                            static_cast<std::uint64_t>(beta == 1 ? c : convert<T>(beta * static_cast<double>(c))));
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  switch (y.dtype()) {
    case QTN_FLOAT32:
      return run_as<float>(call, y);
    case QTN_FLOAT64:
      return run_as<double>(call, y);
    case QTN_INT32:
      return run_as<std::int32_t>(call, y);
    case QTN_UINT32:
      return run_as<std::uint32_t>(call, y);
    case QTN_INT64:
      return run_as<std::int64_t>(call, y);
    default:
      return run_as<std::uint64_t>(call, y);
  }
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  const Tensor &a = *call.in(0), &b = *call.in(1), *c = call.in(2);
  const Product p = product_of(call);
  const std::size_t axis = p.trans_b ? 0 : 1;
  const bool plain = call.attrs.get_float("alpha", 1) == 1 && (!c || call.attrs.get_float("beta", 1) == 1);
  if (!plain || !is_integer_product(a, b, axis, c, output)) return false;
  const CountedVector<double> x = centered_doubles(a, 0), w = centered_doubles(b, axis);
  CountedVector<double> sums(static_cast<std::size_t>(output.count()));
  blas::gemm(p.m, p.n, p.k, 1.0, x.data(), p.a_form(), w.data(), p.b_form(), 0.0, sums.data(), p.n);
  store_products(output, sums, 1, *a.quantizer(), *b.quantizer(), c, static_cast<std::size_t>(p.n), clamp);
  return true;
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Product p = product_of(run.call);
  const auto alpha = static_cast<float>(run.call.attrs.get_float("alpha", 1)),
             beta = static_cast<float>(run.call.attrs.get_float("beta", 1));
  const float *a = run.call.in(0)->as<const float>(), *b = run.call.in(1)->as<const float>();
  const float *dy = run.dy[0].as<const float>();
  const auto other = [](blas::Operand form) { return blas::Operand{form.ld, !form.transposed}; };
  if (dx[0].has_data() && !p.trans_a)
    blas::gemm(p.m, p.k, p.n, alpha, dy, {p.n}, b, other(p.b_form()), 0.0f, dx[0].as<float>(), p.k);
  if (dx[0].has_data() && p.trans_a)
    blas::gemm(p.k, p.m, p.n, alpha, b, p.b_form(), dy, {p.n, true}, 0.0f, dx[0].as<float>(), p.m);
  if (dx[1].has_data() && !p.trans_b)
    blas::gemm(p.k, p.n, p.m, alpha, a, other(p.a_form()), dy, {p.n}, 0.0f, dx[1].as<float>(), p.n);
  if (dx[1].has_data() && p.trans_b)
    blas::gemm(p.n, p.k, p.m, alpha, dy, {p.n, true}, a, p.a_form(), 0.0f, dx[1].as<float>(), p.k);
  if (run.call.in(2)) broadcast_gradient(dx[2], run.dy[0], [beta](float slope) { return beta * slope; });
}

std::size_t channel_axis(const Attrs &attrs) { return attrs.get_int("transB", 0) != 0 ? 0 : 1; }

std::string addition(const Attrs &attrs) {
  if (attrs.get_int("transA", 0) != 0) return "transA is 1";
  for (const char *factor : {"alpha", "beta"})
    if (const double value = attrs.get_float(factor, 1); value != 1) return cat(factor, " is ", value);
  return {};
}

constexpr ProductForm kProduct{.channel_axis = channel_axis, .addition = addition};

}  // namespace

const OpDef kGemm{.name = "Gemm",
                  .min_inputs = 2,
                  .max_inputs = 3,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .run_quantized = run_quantized,
                  .backward = backward,
                  .keeps = {.inputs = kAllInputs},
                  .product = &kProduct,
                  .weights = {1, 1},
                  .offsets = {2, 1},
                  .work = work_of_product};

}  // namespace qtn::ops
