// SPDX-License-Identifier: Apache-2.0
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dtype", AttrSpec::kInt}, {"k", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  if (x.rank() != 2) fail(QTN_ESHAPE, "EyeLike: input ", to_string(x.shape()), " is no matrix");
  return {{dtype_attribute("EyeLike", call.attrs, "dtype", x.dtype()), x.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  const std::int64_t columns = y.dim(1), k = call.attrs.get_int("k", 0);
  generate(y, [=](std::int64_t i) { return i % columns - i / columns == k ? 1.0 : 0.0; });
}

}  // namespace

const OpDef kEyeLike{.name = "EyeLike",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kAttrs,
                     .infer = infer,
                     .run = run,
                     .reads_shapes = true,
                     .output_dtype = output_dtype_or_input};

}  // namespace qtn::ops
