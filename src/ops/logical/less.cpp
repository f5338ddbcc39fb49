// SPDX-License-Identifier: Apache-2.0
#include "ops/common/comparison.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_comparison("Less", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  compare(Comparison::less, *call.in(0), *call.in(1), outputs[0]);
}

}  // namespace

const OpDef kLess{.name = "Less",
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .output_dtype = makes<QTN_BOOL>};

}  // namespace qtn::ops
