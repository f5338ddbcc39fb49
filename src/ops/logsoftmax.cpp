// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_softmax("LogSoftmax", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_softmax("LogSoftmax", call, outputs[0],
              [](auto *to, auto *from, auto top, double sum, std::int64_t length, std::int64_t step) {
                const auto logarithm = static_cast<decltype(top)>(std::log(sum));
                for (std::int64_t k = 0; k < length; ++k) to[k * step] = from[k * step] - top - logarithm;
              });
}

}  // namespace

const OpDef kLogSoftmax{.name = "LogSoftmax",
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .max_outputs = 1,
                        .attrs = kSoftmaxAttrs,
                        .infer = infer,
                        .run = run,
                        .upgrade = upgrade_softmax};

}  // namespace qtn::ops
