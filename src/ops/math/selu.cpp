// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/elementary.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}, {"gamma", AttrSpec::kFloat}};

constexpr double kAlpha = 1.67326319217681884765625, kGamma = 1.05070102214813232421875;

Types infer(const Call &call) { return infer_real_unary("Selu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", kAlpha);
  const double gamma = call.attrs.get_float("gamma", kGamma);
  map_reals(call, outputs, [alpha, gamma](auto x) {
    using T = decltype(x);
    return static_cast<T>(gamma) * (x > 0 ? x : static_cast<T>(alpha) * std::expm1(x));
  });
}

/// At 0 that of what is below, as PyTorch has it.
void backward(const Backward &run, std::span<const Tensor> dx) {
  const double alpha = run.call.attrs.get_float("alpha", kAlpha), gamma = run.call.attrs.get_float("gamma", kGamma);
  backward_by_input(run, dx, [alpha, gamma](float slope, float x) {
    const double rate = x > 0 ? gamma : gamma * alpha * exponential(static_cast<double>(x));
    return static_cast<float>(static_cast<double>(slope) * rate);
  });
}

/// The numbers of today have more digits.
void upgrade(OldNode &node) {
  if (node.opset >= 6) return;
  if (!node.attrs.has("alpha")) node.attrs.set("alpha", 1.6732);
  if (!node.attrs.has("gamma")) node.attrs.set("gamma", 1.0507);
}

}  // namespace

const OpDef kSelu{.name = "Selu",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .elementwise = true,
                  .backward = backward,
                  .keeps = {.inputs = kAllInputs},
                  .upgrade = upgrade};

}  // namespace qtn::ops
