// SPDX-License-Identifier: Apache-2.0
#include "ops/common/activation.hpp"
#include "ops/common/arithmetic.hpp"
#include "ops/common/reduced_floats.hpp"
#include "ops/common/reduced_numbers.hpp"
#include "ops/common/scratch_tensors.hpp"

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

/// top + log(sum of exp(x - top)), where top is the largest, or 0 where that is not finite.
void run_floats(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const AxisSet axes = ready_axes(call);
  Scratch own, &scratch = call.scratch ? *call.scratch : own;
  const auto [powers, top] = scratch_tensors<2>(scratch, {{{QTN_FLOAT32, x.shape()}, {QTN_FLOAT32, y.shape()}}});
  extremum_floats(kernels::Arithmetic::max, x, axes, top);
  map_elements<float>(top, top, [](float v) { return std::isfinite(v) ? v : 0; });
  run_arithmetic(kernels::Arithmetic::sub, x, repeated(top, axes, x.shape()), powers);
  run_activation(kernels::Activation::exp, powers, powers);
  sum_floats(
      Addends::numbers, powers, axes, 1, [](double sum) { return std::log(sum); }, y);
  const float *from = top.as<const float>();
  float *to = y.as<float>();
  for (std::int64_t i = 0; i < y.count(); ++i) to[i] += from[i];
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  if (y.dtype() == QTN_FLOAT32 && call.in(0)->count() > 0) return run_floats(call, y);
  dispatch_reduced(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    reduce<T, T>(
        *call.in(0), ready_axes(call), y, Exponentials{},
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
