// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cast.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"saturate", AttrSpec::kInt}, {"round_mode", AttrSpec::kString}};

Types infer(const Call &call) {
  power_rounding("CastLike", call.attrs);
  return {{call.in(1)->dtype(), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  cast_elements(*call.in(0), outputs[0], call.attrs.get_int("saturate", 1) != 0,
                power_rounding("CastLike", call.attrs));
}

}  // namespace

const OpDef kCastLike{.name = "CastLike",
                      .min_inputs = 2,
                      .max_inputs = 2,
                      .max_outputs = 1,
                      .attrs = kAttrs,
                      .any_type = true,
                      .infer = infer,
                      .run = run,
                      .moved = {1, 1}};

}  // namespace qtn::ops
