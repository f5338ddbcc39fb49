// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arithmetic.hpp"
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/scratch_tensors.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &exponent = *call.in(1);
  require_dtype("Pow", "x", x, {QTN_FLOAT32, QTN_FLOAT64, QTN_INT32, QTN_INT64});
  require_number("Pow", "exponent", exponent);
  return {{x.dtype(), broadcast(x.shape(), exponent.shape(), "Pow")}};
}

/// Wraps around, as all arithmetic on integers here. A negative exponent gives the quotient truncated towards zero.
template <class T>
T integer_power(T base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? T(1) : base == -1 ? T(exponent % 2 == 0 ? 1 : -1) : T(0);
  auto square = static_cast<std::uint64_t>(base), result = std::uint64_t{1};
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2 != 0) result *= square;
  return static_cast<T>(result);
}

/// Numbers of any type as another, where they are not.
template <class To>
Tensor as_type(const Tensor &t, qdtype dtype, Scratch &scratch) {
  if (t.dtype() == dtype) return t;
  const Tensor out = scratch_tensors<1>(scratch, {{{dtype, t.shape()}}})[0];
  dispatch_number(t.dtype(), [&](auto zero) {
    map_elements<decltype(zero), To>(t, out, [](auto v) { return static_cast<To>(v); });
  });
  return out;
}

template <class T>
void run_as(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0), &exponent = *call.in(1);
  Scratch own, &scratch = call.scratch ? *call.scratch : own;
  const auto with = [&](qdtype dtype, auto zero, auto &&power) {
    using E = decltype(zero);
    map_broadcast<T, E>(x, as_type<E>(exponent, dtype, scratch), y.shape(), y.as<T>(), power);
  };
  if constexpr (std::is_floating_point_v<T>) {
    if (exponent.dtype() == y.dtype())
      return with(y.dtype(), T(), [](T v, T e) { return static_cast<T>(std::pow(v, e)); });
  } else {
    if (!is_floating(exponent.dtype())) return with(QTN_INT64, std::int64_t(), integer_power<T>);
  }
  with(QTN_FLOAT64, double(), [](T v, double e) { return convert<T>(std::pow(static_cast<double>(v), e)); });
}

/// The square and the cube, as normalizations and Gelu have them: the general function takes a hundred times as long.
bool is_single(const Tensor &exponent, qdtype dtype, float value) {
  return exponent.count() == 1 && exponent.dtype() == QTN_FLOAT32 && dtype == QTN_FLOAT32 &&
         *exponent.as<const float>() == value;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &exponent = *call.in(1), &y = outputs[0];
  if (is_single(exponent, x.dtype(), 2)) return run_arithmetic(kernels::Arithmetic::mul, x, x, y);
  if (is_single(exponent, x.dtype(), 3)) return map_elements<float>(x, y, [](float v) { return v * v * v; });
  switch (x.dtype()) {
    case QTN_FLOAT32:
      return run_as<float>(call, y);
    case QTN_FLOAT64:
      return run_as<double>(call, y);
    case QTN_INT32:
      return run_as<std::int32_t>(call, y);
    default:
      return run_as<std::int64_t>(call, y);
  }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &exponent = *run.call.in(1);
  refuse_gradient("Pow", "the exponent", dx[1]);
  if (!dx[0].has_data()) return;
  // To the power of 0 all are 1, zeros too.
  const auto slope_at = [](float slope, float v, float e) { return e == 0 ? 0.0f : slope * e * std::pow(v, e - 1); };
  broadcast_gradient(dx[0], run.dy[0], slope_at, x, as_type<float>(exponent, QTN_FLOAT32, run.scratch));
}

}  // namespace

const OpDef kPow{.name = "Pow",
                 .min_inputs = 2,
                 .max_inputs = 2,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .elementwise = true,
                 .backward = backward,
                 .keeps = {.inputs = kAllInputs}};

}  // namespace qtn::ops
