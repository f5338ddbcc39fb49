// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/elementary.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

double alpha_of(const Call &call) { return call.attrs.get_float("alpha", 1); }

Types infer(const Call &call) {
  if (alpha_of(call) == 0) fail(QTN_EINVAL, "Celu: alpha is 0");
  return infer_real_unary("Celu", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = alpha_of(call);
  map_reals(call, outputs, [=](auto x) {
    using T = decltype(x);
    return x < 0 ? static_cast<T>(alpha) * std::expm1(x / static_cast<T>(alpha)) : x;
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const double alpha = alpha_of(run.call);
  backward_by_input(run, dx, [=](float slope, float x) {
    return x < 0 ? slope * static_cast<float>(exponential(static_cast<double>(x) / alpha)) : slope;
  });
}

}  // namespace

const OpDef kCelu{.name = "Celu",
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
