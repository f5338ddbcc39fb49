// SPDX-License-Identifier: Apache-2.0
#include "base/whole_number.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_real_unary("Floor", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  map_reals(call, outputs, [](auto x) { return whole_below(x); });
}

}  // namespace

const OpDef kFloor{.name = "Floor",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .max_outputs = 1,
                   .attrs = {},
                   .infer = infer,
                   .run = run,
                   .elementwise = true};

}  // namespace qtn::ops
