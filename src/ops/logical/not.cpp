// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_dtype("Not", "x", *call.in(0), {QTN_BOOL});
  return {{QTN_BOOL, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  map_elements<bool>(*call.in(0), outputs[0], [](bool x) { return !x; });
}

}  // namespace

const OpDef kNot{
    .name = "Not", .min_inputs = 1, .max_inputs = 1, .max_outputs = 1, .attrs = {}, .infer = infer, .run = run};

}  // namespace qtn::ops
