// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return {{call.in(0)->dtype(), call.in(0)->shape()}}; }

}  // namespace

const OpDef kIdentity{.name = "Identity",
                      .min_inputs = 1,
                      .max_inputs = 1,
                      .max_outputs = 1,
                      .attrs = {},
                      .any_type = true,
                      .infer = infer,
                      .run = run_copy,
                      .moves = always_moves,
                      .backward = backward_copy,
                      .keeps_order = true};

}  // namespace qtn::ops
