// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduced_floats.hpp"
#include "ops/common/reduced_numbers.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_reduced_number("ReduceLogSum", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  if (outputs[0].dtype() == QTN_FLOAT32)
    return sum_floats(
        Addends::numbers, *call.in(0), ready_axes(call), 1, [](double sum) { return std::log(sum); }, outputs[0]);
  reduce_doubles(
      call, outputs[0], [](double v) { return v; }, [](double sum) { return std::log(sum); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_reduced(run, dx[0], [](float slope, float, float y) { return slope * std::exp(-y); });
}

}  // namespace

const OpDef kReduceLogSum{.name = "ReduceLogSum",
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
