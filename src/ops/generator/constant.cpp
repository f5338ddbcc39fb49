// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"value", AttrSpec::kTensor},        {"value_float", AttrSpec::kFloat},
                               {"value_floats", AttrSpec::kFloats}, {"value_int", AttrSpec::kInt},
                               {"value_ints", AttrSpec::kInts},     {"value_string", AttrSpec::kString}};

Tensor value_of(const Attrs &attrs) {
  if (attrs.size() != 1) fail(QTN_EINVAL, "Constant: ", attrs.size(), " values given, not one");
  if (const Tensor *value = attrs.get_tensor("value")) return *value;
  if (attrs.has("value_float")) return Tensor::scalar(static_cast<float>(attrs.get_float("value_float", 0)));
  if (attrs.has("value_ints")) return Tensor::from_ints(attrs.get_ints("value_ints"));
  if (attrs.has("value_int")) {
    const std::int64_t value = attrs.get_int("value_int", 0);
    return Tensor::from<std::int64_t>(QTN_INT64, {}, std::span(&value, 1));
  }
  if (attrs.has("value_floats")) {
    const std::vector<double> doubles = attrs.get_floats("value_floats");
    const std::vector<float> floats(doubles.begin(), doubles.end());
    return Tensor::from<float>(QTN_FLOAT32, {static_cast<std::int64_t>(floats.size())}, floats);
  }
  fail(QTN_EUNSUPPORTED, "Constant: strings are not supported");
}

Types infer(const Call &call) {
  const Tensor value = value_of(call.attrs);
  return {{value.dtype(), value.shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) { copy_elements(outputs[0], value_of(call.attrs)); }

}  // namespace

const OpDef kConstant{.name = "Constant",
                      .min_inputs = 0,
                      .max_inputs = 0,
                      .max_outputs = 1,
                      .attrs = kAttrs,
                      .any_type = true,
                      .infer = infer,
                      .run = run};

}  // namespace qtn::ops
