// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arg_extremum.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_arg("ArgMax", call); }

void run(const Call &call, std::span<Tensor> outputs) { run_arg(arg_axis("ArgMax", call), call, outputs[0], Larger()); }

}  // namespace

const OpDef kArgMax{.name = "ArgMax",
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .max_outputs = 1,
                    .attrs = kArgAttrs,
                    .infer = infer,
                    .run = run,
                    .output_dtype = makes<QTN_INT64>};

}  // namespace qtn::ops
