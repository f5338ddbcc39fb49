// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cast.hpp"

#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"to", AttrSpec::kInt}, {"saturate", AttrSpec::kInt}, {"round_mode", AttrSpec::kString}};

Types infer(const Call &call) {
  power_rounding("Cast", call.attrs);
  if (!call.attrs.has("to")) fail(QTN_EINVAL, "Cast: attribute \"to\" is missing");
  return {{dtype_attribute("Cast", call.attrs, "to", QTN_FLOAT32), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  cast_elements(*call.in(0), outputs[0], call.attrs.get_int("saturate", 1) != 0, power_rounding("Cast", call.attrs));
}

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype) {
  return static_cast<qdtype>(attrs.get_int("to", QTN_FLOAT32));
}

}  // namespace

const OpDef kCast{.name = "Cast",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .any_type = true,
                  .infer = infer,
                  .run = run,
                  .output_dtype = output_dtype};

}  // namespace qtn::ops
