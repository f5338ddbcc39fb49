// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/elementwise.hpp"
#include "ops/gradient.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"approximate", AttrSpec::kString}};

bool by_tanh(const Attrs &attrs) {
  const std::string approximate = attrs.get_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    fail(QTN_EINVAL, "Gelu: approximate is \"", approximate, "\", not none or tanh");
  return approximate == "tanh";
}

Types infer(const Call &call) {
  by_tanh(call.attrs);
  return infer_real_unary("Gelu", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (by_tanh(call.attrs))
    return map_reals(call, outputs, [](auto x) {
      using T = decltype(x);
      constexpr T kSlope = T(std::numbers::sqrt2 * std::numbers::inv_sqrtpi), kCubic = T(0.044715);
      return T(0.5) * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x)));
    });
  // 1 + erf(x / sqrt 2) loses its digits far below zero; erfc keeps them.
  map_reals(call, outputs, [](auto x) {
    using T = decltype(x);
    return T(0.5) * x * std::erfc(x * T(-1 / std::numbers::sqrt2));
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  constexpr float kRoot = std::numbers::sqrt2_v<float>, kInverse = std::numbers::inv_sqrtpi_v<float>;
  if (by_tanh(run.call.attrs))
    return backward_by_input(run, dx, [](float slope, float x) {
      constexpr float kSlope = kRoot * kInverse, kCubic = 0.044715f;
      const float t = std::tanh(kSlope * (x + kCubic * x * x * x));
      return slope * 0.5f * (1 + t + x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x));
    });
  backward_by_input(run, dx, [](float slope, float x) {
    return slope * (0.5f * std::erfc(-x / kRoot) + x * std::exp(-0.5f * x * x) * kInverse / kRoot);
  });
}

}  // namespace

const OpDef kGelu{.name = "Gelu",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .backward = backward,
                  .keeps = {.inputs = kAllInputs}};

}  // namespace qtn::ops
