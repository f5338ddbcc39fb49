// SPDX-License-Identifier: Apache-2.0
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dtype", AttrSpec::kInt},
                               {"mean", AttrSpec::kFloat},
                               {"scale", AttrSpec::kFloat},
                               {"seed", AttrSpec::kFloat},
                               {"shape", AttrSpec::kInts}};

Types infer(const Call &call) {
  const qdtype dtype = dtype_attribute("RandomNormal", call.attrs, "dtype", QTN_FLOAT32);
  if (!is_floating(dtype)) fail(QTN_EDTYPE, "RandomNormal: dtype is ", dtype_name(dtype), ", which is no float");
  if (!call.attrs.has("shape")) fail(QTN_EINVAL, "RandomNormal: attribute \"shape\" is missing");
  return {{dtype, Shape(call.attrs.get_ints("shape"))}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const double mean = call.attrs.get_float("mean", 0), scale = call.attrs.get_float("scale", 1);
  generate(outputs[0], [=, draws = Draws(call.attrs)](std::int64_t i) { return mean + scale * draws.normal(i); });
}

}  // namespace

const OpDef kRandomNormal{.name = "RandomNormal",
                          .min_inputs = 0,
                          .max_inputs = 0,
                          .max_outputs = 1,
                          .attrs = kAttrs,
                          .infer = infer,
                          .run = run,
                          .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
