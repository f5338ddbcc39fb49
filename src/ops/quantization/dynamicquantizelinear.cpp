// SPDX-License-Identifier: Apache-2.0
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_float("DynamicQuantizeLinear", "x", call.in(0));
  dynamic_numerics("DynamicQuantizeLinear", call.attrs);
  Types types{{QTN_UINT8, call.in(0)->shape()}, {QTN_FLOAT32, {}}, {QTN_UINT8, {}}};
  types.resize(call.output_count);
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Numerics numerics = dynamic_numerics("DynamicQuantizeLinear", call.attrs);
  const QuantizerPtr q = dynamic_quantizer("DynamicQuantizeLinear", *call.in(0), numerics);
  copy_elements(outputs[0], quantize(*call.in(0), q));
  if (outputs.size() > 1) *outputs[1].as<float>() = q->scale();
  if (outputs.size() > 2) *outputs[2].as<std::uint8_t>() = static_cast<std::uint8_t>(q->zero_point());
}

}  // namespace

const OpDef kDynamicQuantizeLinear{.name = "DynamicQuantizeLinear",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .max_outputs = 3,
                                   .attrs = kDynamicAttrs,
                                   .infer = infer,
                                   .run = run};

}  // namespace qtn::ops
