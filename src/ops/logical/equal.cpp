// SPDX-License-Identifier: Apache-2.0
#include "ops/common/comparison.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_same_dtype("Equal", a, b);
  return {{QTN_BOOL, broadcast(a.shape(), b.shape(), "Equal")}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  compare(Comparison::equal, *call.in(0), *call.in(1), outputs[0]);
}

}  // namespace

const OpDef kEqual{.name = "Equal",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .max_outputs = 1,
                   .attrs = {},
                   .infer = infer,
                   .run = run,
                   .output_dtype = makes<QTN_BOOL>};

}  // namespace qtn::ops
