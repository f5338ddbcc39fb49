// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arithmetic.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_binary("Div", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &a = *call.in(0), &b = *call.in(1), &y = outputs[0];
  if (y.dtype() == QTN_FLOAT32) return run_arithmetic(kernels::Arithmetic::div, a, b, y);
  dispatch_number(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      if (y.count() > 0 && std::count(b.as<T>(), b.as<T>() + b.count(), T(0)) > 0)
        fail(QTN_EINVAL, "Div: division of integers by zero");
      // ONNX truncates towards zero. The negation wraps where the quotient would not fit.
      map_broadcast<T, T>(a, b, y.shape(), y.as<T>(), [](T u, T v) {
        if (std::is_signed_v<T> && v == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<std::uint64_t>(u));
        return static_cast<T>(u / v);
      });
    } else {
      map_broadcast<T, T>(a, b, y.shape(), y.as<T>(), [](T u, T v) { return u / v; });
    }
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0], &a = *run.call.in(0), &b = *run.call.in(1);
  broadcast_gradient(
      dx[0], dy, [](float slope, float v) { return slope / v; }, b);
  broadcast_gradient(
      dx[1], dy, [](float slope, float u, float v) { return -slope * u / (v * v); }, a, b);
}

}  // namespace

const OpDef kDiv{.name = "Div",
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
