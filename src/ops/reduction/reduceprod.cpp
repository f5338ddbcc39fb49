// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_number("ReduceProd", "x", *call.in(0));
  return infer_reduction("ReduceProd", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  dispatch_wrapping(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
    reduce<T, T>(
        x, ready_axes(call), outputs[0], Wide(1), [](Wide a, T b) { return a * static_cast<Wide>(b); },
        [](Wide v) { return static_cast<T>(v); }, kFewForFastLoops);
  });
}

/// dy times the product of all others. Where one of them is 0 only that one has a gradient; where two are, all
/// gradients are 0.
void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  const ReductionPlan plan(x, ready_axes(run.call), dy);
  const std::int64_t length = element_count(plan.reduced);
  parallel_for(static_cast<std::size_t>(dy.count()), [&](std::size_t index) {
    const ReductionPlan::Place place = plan.kept_at(static_cast<std::int64_t>(index));
    const float *from = x.as<const float>() + place.x;
    double product = static_cast<double>(dy.as<const float>()[place.y]);
    std::int64_t zeros = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const float v = from[plan.reduced_at(i)];
      v == 0 ? void(++zeros) : void(product *= static_cast<double>(v));
    }
    float *to = dx[0].as<float>() + place.x;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t at = plan.reduced_at(i);
      const double others = zeros == 0 ? product / static_cast<double>(from[at]) : product;
      to[at] = static_cast<float>(zeros == (from[at] == 0) ? others : 0);
    }
  });
}

}  // namespace

const OpDef kReduceProd{.name = "ReduceProd",
                        .min_inputs = 1,
                        .max_inputs = 2,
                        .max_outputs = 1,
                        .attrs = kReductionAttrs,
                        .infer = infer,
                        .run = run,
                        .prepare = prepare<ReducedAxes>,
                        .backward = backward,
                        .keeps = {.inputs = {0, 1}},
                        .shapes_from = {1, 1},
                        .upgrade = upgrade_reduction};

}  // namespace qtn::ops
