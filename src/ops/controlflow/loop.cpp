// SPDX-License-Identifier: Apache-2.0
#include "ops/common/control.hpp"

namespace qtn::ops {

const OpDef kLoop{.name = "Loop",
                  .min_inputs = 0,  // of two, either may be absent
                  .max_inputs = kVariadic - 1,
                  .max_outputs = kVariadic,
                  .attrs = {},
                  .infer = infer_control,
                  .run = run_control};

}  // namespace qtn::ops
