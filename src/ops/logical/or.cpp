// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_dtype("Or", "a", a, {QTN_BOOL});
  require_same_dtype("Or", a, b);
  return {{QTN_BOOL, broadcast(a.shape(), b.shape(), "Or")}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  map_broadcast<bool, bool>(*call.in(0), *call.in(1), y.shape(), y.as<bool>(), [](bool a, bool b) { return a | b; });
}

}  // namespace

const OpDef kOr{
    .name = "Or", .min_inputs = 2, .max_inputs = 2, .max_outputs = 1, .attrs = {}, .infer = infer, .run = run};

}  // namespace qtn::ops
