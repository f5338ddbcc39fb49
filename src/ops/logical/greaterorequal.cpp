// SPDX-License-Identifier: Apache-2.0
#include "ops/common/comparison.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_comparison("GreaterOrEqual", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  compare(call, outputs, [](auto a, auto b) { return a >= b; });
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
