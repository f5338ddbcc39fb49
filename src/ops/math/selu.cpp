// SPDX-License-Identifier: Apache-2.0
#include "ops/common/exponential_unit.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}, {"gamma", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("Selu", call); }

void run(const Call &call, std::span<Tensor> outputs) { run_exponential_unit(selu_of(call.attrs), call, outputs); }

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_exponential_unit(selu_of(run.call.attrs), run, dx);
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
