// SPDX-License-Identifier: Apache-2.0
#include "ops/common/random_fill.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dtype", AttrSpec::kInt},
                               {"high", AttrSpec::kFloat},
                               {"low", AttrSpec::kFloat},
                               {"seed", AttrSpec::kFloat},
                               {"shape", AttrSpec::kInts}};

Types infer(const Call &call) { return infer_random("RandomUniform", call); }

}  // namespace

const OpDef kRandomUniform{.name = "RandomUniform",
                           .min_inputs = 0,
                           .max_inputs = 0,
                           .max_outputs = 1,
                           .attrs = kAttrs,
                           .infer = infer,
                           .run = run_uniform,
                           .work = work_of_uniform,
                           .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
