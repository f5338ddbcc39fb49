// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_real("IsNaN", "x", call.in(0));
  return {{QTN_BOOL, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const auto test = [](auto x) { return x != x; };
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? map_elements<double, bool>(x, outputs[0], test)
                           : map_elements<float, bool>(x, outputs[0], test);
}

}  // namespace

const OpDef kIsNaN{.name = "IsNaN",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .max_outputs = 1,
                   .attrs = {},
                   .infer = infer,
                   .run = run,
                   .output_dtype = makes<QTN_BOOL>};

}  // namespace qtn::ops
