// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/infer.hpp"
#include "ops/scale_layout.hpp"

namespace qtn::ops {
namespace {

// "precision" came with opset 23; float32 is what scales of float32 mean without it.
constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt},
                               {"block_size", AttrSpec::kInt},
                               {"output_dtype", AttrSpec::kInt},
                               {"precision", AttrSpec::kInt},
                               {"saturate", AttrSpec::kInt}};

qdtype output_dtype(const Call &call) {
  const std::int64_t code = call.attrs.get_int("output_dtype", 0);
  const Tensor *zero = call.in(2);
  if (code == 0) return zero ? zero->dtype() : QTN_UINT8;
  const auto dtype = static_cast<qdtype>(code > 0 && code < 64 ? code : 0);
  if (zero && zero->dtype() != dtype)
    fail(QTN_EDTYPE, "QuantizeLinear: output_dtype is ", code, " (", dtype_name(dtype), "), the zero point is ",
         dtype_name(zero->dtype()));
  return dtype;
}

Types infer(const Call &call) {
  require_float("QuantizeLinear", "x", call.in(0));
  scale_layout("QuantizeLinear", call);
  const std::int64_t precision = call.attrs.get_int("precision", 0);
  if (precision != 0 && precision != QTN_FLOAT32)
    fail(QTN_EUNSUPPORTED, "QuantizeLinear: precision ", precision, " is not supported");
  const qdtype dtype = output_dtype(call);
  if (dtype != QTN_UINT8 && dtype != QTN_INT8 && dtype != QTN_UINT16 && dtype != QTN_INT16)
    fail(QTN_EUNSUPPORTED, "QuantizeLinear: quantization to ", dtype_name(dtype), " is not supported");
  return {{dtype, call.in(0)->shape()}};
}

/// NaN becomes the zero point.
template <class T>
T quantize(float x, float scale, T zero) {
  const float scaled = x / scale;
  if (std::isnan(scaled)) return zero;
  constexpr float kLowest = std::numeric_limits<T>::lowest(), kHighest = std::numeric_limits<T>::max();
  const auto offset = static_cast<float>(zero);
  // The bounds are integers, so clamping before rounding changes nothing.
  return static_cast<T>(
      static_cast<std::int32_t>(std::nearbyint(std::clamp(scaled, kLowest - offset, kHighest - offset))) + zero);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const ScaleLayout layout = scale_layout("QuantizeLinear", call);
  const float *x = call.in(0)->as<const float>(), *scale = call.in(1)->as<const float>();
  dispatch(outputs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 2 && !std::is_same_v<T, bool>) {
      const T *zero = call.in(2) ? call.in(2)->as<const T>() : nullptr;
      T *y = outputs[0].as<T>();
      layout.for_stretches(call.in(0)->count(), [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
        for (std::int64_t i = begin; i < end; ++i, at += layout.step)
          y[i] = quantize<T>(x[i], scale[at], zero ? zero[at] : T{});
      });
    }
  });
}

}  // namespace

const OpDef kQuantizeLinear{.name = "QuantizeLinear",
                            .min_inputs = 2,
                            .max_inputs = 3,
                            .max_outputs = 1,
                            .attrs = kAttrs,
                            .infer = infer,
                            .run = run};

}  // namespace qtn::ops
