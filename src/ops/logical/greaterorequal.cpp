// SPDX-License-Identifier: Apache-2.0
#include "ops/common/comparison.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_comparison("GreaterOrEqual", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  compare(Comparison::less_or_equal, *call.in(1), *call.in(0), outputs[0]);
}

}  // namespace

const OpDef kGreaterOrEqual{.name = "GreaterOrEqual",
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .max_outputs = 1,
                            .attrs = {},
                            .infer = infer,
                            .run = run,
                            .output_dtype = makes<QTN_BOOL>};

}  // namespace qtn::ops
