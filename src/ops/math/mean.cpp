// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradient.hpp"
#include "ops/common/variadic.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_real("Mean", "input 0", call.in(0));
  return infer_variadic("Mean", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  add_operands(call, y);
  const auto share = [count = call.inputs.size()](auto sum) { return sum / static_cast<decltype(sum)>(count); };
  y.dtype() == QTN_FLOAT64 ? map_elements<double>(y, y, share) : map_elements<float>(y, y, share);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const auto count = static_cast<float>(run.call.inputs.size());
  for (const Tensor &d : dx) broadcast_gradient(d, run.dy[0], [count](float slope) { return slope / count; });
}

}  // namespace

const OpDef kMean{.name = "Mean",
                  .min_inputs = 1,
                  .max_inputs = kVariadic,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .backward = backward};

}  // namespace qtn::ops
