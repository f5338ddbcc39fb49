// SPDX-License-Identifier: Apache-2.0
#include "ops/common/extremum.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_variadic("Max", call); }

void run(const Call &call, std::span<Tensor> outputs) { run_extremum(call, outputs[0], Larger()); }

}  // namespace

const OpDef kMax{.name = "Max",
                 .min_inputs = 1,
                 .max_inputs = kVariadic,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .elementwise = true,
                 .moves = always_moves,
                 .moved = {0, kVariadic},
                 .backward = backward_extremum,
                 .keeps = {.inputs = kAllInputs, .outputs = true}};

}  // namespace qtn::ops
