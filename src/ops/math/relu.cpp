// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/common/activation.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_number("Relu", "x", *call.in(0));
  return {{call.in(0)->dtype(), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (call.in(0)->dtype() == QTN_FLOAT32) return run_activation(kernels::Activation::relu, *call.in(0), outputs[0]);
  dispatch_number(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    // Written so that NaN stays NaN.
    map_elements<T>(*call.in(0), outputs[0], [](T x) { return x <= T(0) ? T(0) : x; });
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_activation(kernels::Activation::relu, run.outputs[0], run.dy[0], dx[0]);
}

}  // namespace

const OpDef kRelu{.name = "Relu",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .keeps_grid = true,
                  .backward = backward,
                  .keeps = {.outputs = true},
                  .homogeneous = true};

}  // namespace qtn::ops
