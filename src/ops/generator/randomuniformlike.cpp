// SPDX-License-Identifier: Apache-2.0
#include "ops/common/random_fill.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"dtype", AttrSpec::kInt}, {"high", AttrSpec::kFloat}, {"low", AttrSpec::kFloat}, {"seed", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_random("RandomUniformLike", call); }

}  // namespace

const OpDef kRandomUniformLike{.name = "RandomUniformLike",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .max_outputs = 1,
                               .attrs = kAttrs,
                               .infer = infer,
                               .run = run_uniform,
                               .reads_shapes = true,
                               .work = work_of_uniform,
                               .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
