// SPDX-License-Identifier: Apache-2.0
#include "ops/common/rms.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"epsilon", AttrSpec::kFloat}, {"stash_type", AttrSpec::kInt}};
constexpr const char *kName = "RMSNormalization";

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), kName);
}

Types infer(const Call &call) {
  check_rms(kName, *call.in(0), *call.in(1));
  axis_of(call);
  return {{call.in(1)->dtype(), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  rms_normalize(*call.in(0), *call.in(1), axis_of(call), call.attrs.get_float("epsilon", 1e-5), outputs[0], nullptr);
}

}  // namespace

const OpDef kRMSNormalization{.name = kName,
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .max_outputs = 1,
                              .attrs = kAttrs,
                              .infer = infer,
                              .run = run,
                              .moved = {1, 1},
                              .offsets = {1, 1}};

}  // namespace qtn::ops
