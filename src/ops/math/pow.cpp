// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arithmetic.hpp"
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

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

template <class T, class E>
T power(T x, E exponent) {
  if constexpr (std::is_same_v<T, E> && std::is_floating_point_v<T>)
    return std::pow(x, exponent);
  else if constexpr (std::is_integral_v<T> && std::is_integral_v<E>)
    return integer_power(x, exponent);
  else
    return convert<T>(std::pow(static_cast<double>(x), static_cast<double>(exponent)));
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
  dispatch_number(exponent.dtype(), [&](auto exponent_zero) {
    using E = decltype(exponent_zero);
    const auto run_as = [&](auto zero) {
      using T = decltype(zero);
      map_broadcast<T, E>(x, exponent, y.shape(), y.as<T>(), power<T, E>);
    };
    switch (x.dtype()) {
      case QTN_FLOAT32:
        return run_as(float());
      case QTN_FLOAT64:
        return run_as(double());
      case QTN_INT32:
        return run_as(std::int32_t());
      default:
        return run_as(std::int64_t());
    }
  });
}

/// Numbers of any type as float, where they are not.
Tensor to_float(const Tensor &t, Scratch &scratch) {
  if (t.dtype() == QTN_FLOAT32) return t;
  const Tensor out = scratch_tensor(scratch, t.shape());
  dispatch_number(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, float>(t, out, [](T v) { return static_cast<float>(v); });
  });
  return out;
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &exponent = *run.call.in(1);
  refuse_gradient("Pow", "the exponent", dx[1]);
  if (!dx[0].has_data()) return;
  // To the power of 0 all are 1, zeros too.
  const auto slope_at = [](float slope, float v, float e) { return e == 0 ? 0.0f : slope * e * std::pow(v, e - 1); };
  broadcast_gradient(dx[0], run.dy[0], slope_at, x, to_float(exponent, run.scratch));
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
