// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"value", AttrSpec::kTensor}};

Tensor value_of(const Attrs &attrs) {
  const Tensor *value = attrs.get_tensor("value");
  if (value && value->count() != 1)
    fail(QTN_EINVAL, "ConstantOfShape: value must be one number, it is ", to_string(value->shape()));
  return value ? *value : Tensor::scalar(0);
}

Types infer(const Call &call) {
  const Shape shape(constant_ints("ConstantOfShape", "shape", *call.in(0)));
  return {{value_of(call.attrs).dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Shape &shape = outputs[0].shape();
  copy_elements(outputs[0], value_of(call.attrs).view(shape, broadcast_strides({}, {}, shape)));
}

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype) {
  const Tensor *value = attrs.get_tensor("value");
  return value ? value->dtype() : QTN_FLOAT32;
}

}  // namespace

const OpDef kConstantOfShape{.name = "ConstantOfShape",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .max_outputs = 1,
                             .attrs = kAttrs,
                             .any_type = true,
                             .infer = infer,
                             .run = run,
                             .shapes_from = {0, 1},
                             .output_dtype = output_dtype};

}  // namespace qtn::ops
