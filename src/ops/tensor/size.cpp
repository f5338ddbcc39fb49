// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &) { return {{QTN_INT64, {}}}; }

void run(const Call &call, std::span<Tensor> outputs) { *outputs[0].as<std::int64_t>() = call.in(0)->count(); }

}  // namespace

const OpDef kSize{.name = "Size",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = {},
                  .any_type = true,
                  .infer = infer,
                  .run = run,
                  .reads_shapes = true,
                  .output_dtype = makes<QTN_INT64>};

}  // namespace qtn::ops
