// SPDX-License-Identifier: Apache-2.0
#include "ops/common/control.hpp"

namespace qtn::ops {

const OpDef kIf{.name = "If",
                .min_inputs = 1,
                .max_inputs = kVariadic,
                .max_outputs = kVariadic,
                .attrs = {},
                .infer = infer_control,
                .run = run_control};

}  // namespace qtn::ops
