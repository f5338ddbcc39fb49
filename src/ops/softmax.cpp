// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_softmax("Softmax", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_softmax("Softmax", call, outputs[0],
              [](auto *to, auto *, auto top, double sum, std::int64_t length, std::int64_t step) {
                const auto total = static_cast<decltype(top)>(sum);
                for (std::int64_t k = 0; k < length; ++k) to[k * step] /= total;
              });
}

}  // namespace

const OpDef kSoftmax{.name = "Softmax",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kSoftmaxAttrs,
                     .infer = infer,
                     .run = run,
                     .upgrade = upgrade_softmax};

}  // namespace qtn::ops
