// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "ops/reduction.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_number("ReduceProd", "x", *call.in(0));
  return infer_reduction("ReduceProd", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
    reduce<T, T>(
        x, ready_axes(call), outputs[0], Wide(1), [](Wide a, T b) { return a * static_cast<Wide>(b); },
        [](Wide v) { return static_cast<T>(v); });
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
                        .upgrade = upgrade_reduction};

}  // namespace qtn::ops
