// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduced_floats.hpp"
#include "ops/common/reduced_numbers.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_reduced_number("ReduceL1", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  if (outputs[0].dtype() == QTN_FLOAT32)
    return sum_floats(Addends::magnitudes, *call.in(0), ready_axes(call), 1, nullptr, outputs[0]);
  sum_mapped(call, outputs[0], [](auto v, auto wide) { return v < decltype(v)(0) ? 0 - wide : wide; });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_reduced(run, dx[0],
                   [](float slope, float x, float) { return choose(x > 0, slope, choose(x < 0, -slope, 0)); });
}

}  // namespace

const OpDef kReduceL1{.name = "ReduceL1",
                      .min_inputs = 1,
                      .max_inputs = 2,
                      .max_outputs = 1,
                      .attrs = kReductionAttrs,
                      .infer = infer,
                      .run = run,
                      .prepare = prepare<ReducedAxes>,
                      .backward = backward,
                      .keeps = {.inputs = {0, 1}, .outputs = true},
                      .upgrade = upgrade_reduction};

}  // namespace qtn::ops
