// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/common/activation.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"approximate", AttrSpec::kString}};

kernels::Activation form_of(const Attrs &attrs) {
  const std::string approximate = attrs.get_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    fail(QTN_EINVAL, "Gelu: approximate is \"", approximate, "\", not none or tanh");
  return approximate == "tanh" ? kernels::Activation::gelu_by_tanh : kernels::Activation::gelu;
}

Types infer(const Call &call) {
  form_of(call.attrs);
  return infer_real_unary("Gelu", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const kernels::Activation form = form_of(call.attrs);
  if (x.dtype() == QTN_FLOAT32) return run_activation(form, x, y);
  if (form == kernels::Activation::gelu_by_tanh)
    return map_elements<double>(x, y, [](double v) {
      constexpr double kSlope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
      return 0.5 * v * (1 + std::tanh(kSlope * (v + kCubic * v * v * v)));
    });
  // 1 + erf(x / sqrt 2) loses its digits far below zero; erfc keeps them.
  map_elements<double>(x, y, [](double v) { return 0.5 * v * std::erfc(v / -std::numbers::sqrt2); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_activation(form_of(run.call.attrs), *run.call.in(0), run.dy[0], dx[0]);
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
