// SPDX-License-Identifier: Apache-2.0
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"dtype", AttrSpec::kInt}, {"high", AttrSpec::kFloat}, {"low", AttrSpec::kFloat}, {"seed", AttrSpec::kFloat}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const qdtype dtype = dtype_attribute("RandomUniformLike", call.attrs, "dtype", x.dtype());
  if (!is_floating(dtype)) fail(QTN_EDTYPE, "RandomUniformLike: dtype is ", dtype_name(dtype), ", which is no float");
  return {{dtype, x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const double low = call.attrs.get_float("low", 0), high = call.attrs.get_float("high", 1);
  generate(outputs[0],
           [=, draws = Draws(call.attrs)](std::int64_t i) { return low + (high - low) * draws.uniform(i); });
}

}  // namespace

const OpDef kRandomUniformLike{.name = "RandomUniformLike",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .max_outputs = 1,
                               .attrs = kAttrs,
                               .infer = infer,
                               .run = run,
                               .reads_shapes = true,
                               .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
