// SPDX-License-Identifier: Apache-2.0
#include "ops/common/random_fill.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"dtype", AttrSpec::kInt}, {"mean", AttrSpec::kFloat}, {"scale", AttrSpec::kFloat}, {"seed", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_random("RandomNormalLike", call); }

}  // namespace

const OpDef kRandomNormalLike{.name = "RandomNormalLike",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .max_outputs = 1,
                              .attrs = kAttrs,
                              .infer = infer,
                              .run = run_normal,
                              .reads_shapes = true,
                              .work = work_of_normal,
                              .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
