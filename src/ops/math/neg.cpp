// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_dtype("Neg", "x", x, {QTN_FLOAT32, QTN_FLOAT64, QTN_INT8, QTN_INT16, QTN_INT32, QTN_INT64});
  return {{x.dtype(), x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  dispatch_wrapping(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    // The lowest integer has no positive counterpart and stays.
    map_elements<T>(*call.in(0), outputs[0], [](T x) {
      if constexpr (std::is_floating_point_v<T>)
        return -x;
      else
        return static_cast<T>(0 - static_cast<std::uint64_t>(x));
    });
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  map_gradient(dx[0], run.dy[0], run.dy[0], [](float slope, float) { return -slope; });
}

}  // namespace

const OpDef kNeg{.name = "Neg",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .elementwise = true,
                 .backward = backward};

}  // namespace qtn::ops
