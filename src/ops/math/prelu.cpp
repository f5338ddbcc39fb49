// SPDX-License-Identifier: Apache-2.0
#include "ops/common/activation.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &slope = *call.in(1);
  require_number("PRelu", "x", x);
  require_same_dtype("PRelu", x, slope);
  if (!(broadcast(x.shape(), slope.shape(), "PRelu") == x.shape()))
    fail(QTN_ESHAPE, "PRelu: slope ", to_string(slope.shape()), " does not broadcast to x ", to_string(x.shape()));
  return {{x.dtype(), x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  if (y.dtype() == QTN_FLOAT32) return run_leaky(*call.in(1), *call.in(0), y);
  dispatch_number(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(*call.in(0), *call.in(1), y.shape(), y.as<T>(), [](T x, T slope) {
      if constexpr (std::is_floating_point_v<T>)
        return x < 0 ? slope * x : x;
      else  // which wraps around
        return x < T(0) ? static_cast<T>(static_cast<std::uint64_t>(slope) * static_cast<std::uint64_t>(x)) : x;
    });
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0], &x = *run.call.in(0), &factor = *run.call.in(1);
  broadcast_gradient(
      dx[0], dy, [](float slope, float v, float f) { return choose(v > 0, slope, f * slope); }, x, factor);
  broadcast_gradient(
      dx[1], dy, [](float slope, float v) { return choose(v < 0, v * slope, 0); }, x);
}

}  // namespace

const OpDef kPRelu{.name = "PRelu",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .max_outputs = 1,
                   .attrs = {},
                   .infer = infer,
                   .run = run,
                   .elementwise = true,
                   .backward = backward,
                   .keeps = {.inputs = kAllInputs},
                   .weights = {1, 1}};

}  // namespace qtn::ops
