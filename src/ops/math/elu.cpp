// SPDX-License-Identifier: Apache-2.0
#include "ops/common/exponential_unit.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("Elu", call); }

void run(const Call &call, std::span<Tensor> outputs) { run_exponential_unit(elu_of(call.attrs), call, outputs); }

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_exponential_unit(elu_of(run.call.attrs), run, dx);
}

}  // namespace

const OpDef kElu{.name = "Elu",
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
