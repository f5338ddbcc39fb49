// SPDX-License-Identifier: Apache-2.0
#include "ops/infer.hpp"
#include "ops/scale_layout.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"axis", AttrSpec::kInt}, {"block_size", AttrSpec::kInt}, {"output_dtype", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), *zero = call.in(2);
  require_dtype("DequantizeLinear", "x", x, {QTN_UINT8, QTN_INT8, QTN_UINT16, QTN_INT16, QTN_INT32});
  if (zero) require_dtype("DequantizeLinear", "zero point", *zero, {x.dtype()});
  scale_layout("DequantizeLinear", call);
  const std::int64_t code = call.attrs.get_int("output_dtype", 0);
  if (code != 0 && code != QTN_FLOAT32)
    fail(QTN_EUNSUPPORTED, "DequantizeLinear: output_dtype ", code, " is not supported");
  return {{QTN_FLOAT32, x.shape()}};
}

// int32 holds sums of products, whose grid has its zero at 0.
void check_int32_zero(const Tensor &zero) {
  for (const std::int64_t z : int_values(zero, "zero point"))
    if (z != 0) fail(QTN_EINVAL, "DequantizeLinear: the zero point of int32 is ", z, ", it must be 0");
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const ScaleLayout layout = scale_layout("DequantizeLinear", call);
  if (call.in(2) && x.dtype() == QTN_INT32) check_int32_zero(*call.in(2));
  const float *scale = call.in(1)->as<const float>();
  float *y = outputs[0].as<float>();
  dispatch(x.dtype(), [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 4 && !std::is_same_v<T, bool>) {
      const T *q = x.as<const T>(), *zero = call.in(2) ? call.in(2)->as<const T>() : nullptr;
      layout.for_stretches(x.count(), [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
        for (std::int64_t i = begin; i < end; ++i, at += layout.step)
          y[i] = static_cast<float>(q[i] - (zero ? zero[at] : T{})) * scale[at];
      });
    }
  });
}

}  // namespace

const OpDef kDequantizeLinear{.name = "DequantizeLinear",
                              .min_inputs = 2,
                              .max_inputs = 3,
                              .max_outputs = 1,
                              .attrs = kAttrs,
                              .infer = infer,
                              .run = run};

}  // namespace qtn::ops
