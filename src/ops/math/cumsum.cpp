// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cumulative.hpp"

namespace qtn::ops {
namespace {

constexpr auto kJoin = [](auto a, auto b) { return a + b; };

Types infer(const Call &call) { return infer_cumulative("CumSum", call); }

void run(const Call &call, std::span<Tensor> outputs) { run_cumulative("CumSum", call, outputs[0], 0, kJoin); }

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Attrs &attrs = run.call.attrs;
  if (dx[0].has_data())
    accumulate<float>(run.dy[0], dx[0], cumulative_axis("CumSum", run.call), attrs.get_int("exclusive", 0) != 0,
                      attrs.get_int("reverse", 0) == 0, 0, kJoin);
}

}  // namespace

const OpDef kCumSum{.name = "CumSum",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = kCumulativeAttrs,
                    .infer = infer,
                    .run = run,
                    .backward = backward,
                    .keeps = {.inputs = {1, 1}}};

}  // namespace qtn::ops
