// SPDX-License-Identifier: Apache-2.0
#include "ops/common/softmax.hpp"

#include "ops/common/sums.hpp"

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

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0], &y = run.outputs[0];
  if (!dx[0].has_data()) return;
  for_softmax_rows("Softmax", run.call, [&](std::int64_t at, std::int64_t length, std::int64_t step) {
    const float *slope = dy.as<const float>() + at, *from = y.as<const float>() + at;
    float *to = dx[0].as<float>() + at;
    const auto mean =
        static_cast<float>(sum_of(length, [=](std::int64_t k) { return slope[k * step] * from[k * step]; }));
    for (std::int64_t k = 0; k < length; ++k) to[k * step] = from[k * step] * (slope[k * step] - mean);
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
                     .backward = backward,
                     .keeps = {.outputs = true},
                     .bounds = Clamp{0, 1},
                     .upgrade = upgrade_softmax};

}  // namespace qtn::ops
