// SPDX-License-Identifier: Apache-2.0
#include "ops/common/exponential_unit.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) {
  if (celu_of(call.attrs).below == 0) fail(QTN_EINVAL, "Celu: alpha is 0");
  return infer_real_unary("Celu", call);
}

void run(const Call &call, std::span<Tensor> outputs) { run_exponential_unit(celu_of(call.attrs), call, outputs); }

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_exponential_unit(celu_of(run.call.attrs), run, dx);
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
