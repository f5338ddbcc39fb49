// SPDX-License-Identifier: Apache-2.0
#include "quant/descriptors.hpp"

#include <string_view>

#include "base/error.hpp"
#include "base/find_named.hpp"

namespace qtn::quant {
namespace {

struct Named {
  std::string_view name;
  Descriptor descriptor;
};

// pytorch_quantization/tensor_quant.py; all are of 8 bits.
constexpr Named kDescriptors[] = {
    {"QUANT_DESC_8BIT_PER_TENSOR", {true, -1}},
    {"QUANT_DESC_UNSIGNED_8BIT_PER_TENSOR", {false, -1}},
    {"QUANT_DESC_8BIT_CONV1D_WEIGHT_PER_CHANNEL", {true, 0}},
    {"QUANT_DESC_8BIT_CONV2D_WEIGHT_PER_CHANNEL", {true, 0}},
    {"QUANT_DESC_8BIT_CONV3D_WEIGHT_PER_CHANNEL", {true, 0}},
    {"QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW", {true, 0}},
    {"QUANT_DESC_8BIT_CONVTRANSPOSE1D_WEIGHT_PER_CHANNEL", {true, 1}},
    {"QUANT_DESC_8BIT_CONVTRANSPOSE2D_WEIGHT_PER_CHANNEL", {true, 1}},
    {"QUANT_DESC_8BIT_CONVTRANSPOSE3D_WEIGHT_PER_CHANNEL", {true, 1}},
};

}  // namespace

const Descriptor &descriptor(const std::string &name, const char *who) {
  return find_named(kDescriptors, name, who, "descriptor", &Named::name).descriptor;
}

Attrs described(const Attrs &observer) {
  if (!observer.has("descriptor")) return observer;
  const Descriptor &d = descriptor(observer.get_string("descriptor", ""), "observer");
  Attrs attrs;
  attrs.set("numerics", "nvidia");
  attrs.set("dtype", d.is_signed ? "int8" : "uint8");
  attrs.set("scheme", d.axis < 0 ? "per_tensor_symmetric" : "per_channel_symmetric");
  if (d.axis >= 0) attrs.set("axis", std::int64_t{d.axis});
  for (const auto &[key, value] : observer) attrs.set(key, value);
  return attrs;
}

}  // namespace qtn::quant
