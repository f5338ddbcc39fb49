// SPDX-License-Identifier: Apache-2.0
#include "ops/mean.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_float("ReduceMean", "x", call.in(0));
  return infer_reduction("ReduceMean", call);
}

void run(const Call &call, std::span<Tensor> outputs) { mean_floats(*call.in(0), ready_axes(call), outputs[0]); }

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  return mean_quantized(*call.in(0), ready_axes(call), output, clamp);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) mean_gradient(run.dy[0], ready_axes(run.call), dx[0]);
}

}  // namespace

const OpDef kReduceMean{.name = "ReduceMean",
                        .min_inputs = 1,
                        .max_inputs = 2,
                        .max_outputs = 1,
                        .attrs = kReductionAttrs,
                        .infer = infer,
                        .run = run,
                        .prepare = prepare<ReducedAxes>,
                        .run_quantized = run_quantized,
                        .backward = backward,
                        .upgrade = upgrade_reduction};

}  // namespace qtn::ops
