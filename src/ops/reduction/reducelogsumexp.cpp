// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduced_numbers.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_reduced_number("ReduceLogSumExp", call); }

/// A sum of exponentials, in units of the largest so far.
struct Exponentials {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;

  Exponentials operator+(double v) const {
    if (v == top) return {top, sum + 1};
    return v < top ? Exponentials{top, sum + std::exp(v - top)} : Exponentials{v, sum * std::exp(top - v) + 1};
  }
};

void run(const Call &call, std::span<Tensor> outputs) {
  dispatch_reduced(outputs[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    reduce<T, T>(
        *call.in(0), ready_axes(call), outputs[0], Exponentials{},
        [](Exponentials sum, T v) { return sum + static_cast<double>(v); },
        [](Exponentials sum) { return convert<T>(sum.top + std::log(sum.sum)); });
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_reduced(run, dx[0], [](float slope, float x, float y) { return slope * std::exp(x - y); });
}

}  // namespace

const OpDef kReduceLogSumExp{.name = "ReduceLogSumExp",
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
