// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduced_extremum.hpp"
#include "ops/common/reduced_floats.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_reduction("ReduceMin", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  reduce_extremum(kernels::Arithmetic::min, call, ready_axes(call), outputs[0]);
}

}  // namespace

const OpDef kReduceMin{.name = "ReduceMin",
                       .min_inputs = 1,
                       .max_inputs = 2,
                       .max_outputs = 1,
                       .attrs = kReductionAttrs,
                       .infer = infer,
                       .run = run,
                       .prepare = prepare<ReducedAxes>,
                       .moves = always_moves,
                       .backward = backward_reduced_extremum,
                       .keeps = {.inputs = {0, 1}, .outputs = true},
                       .shapes_from = {1, 1},
                       .upgrade = upgrade_reduction};

}  // namespace qtn::ops
