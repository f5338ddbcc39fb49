// SPDX-License-Identifier: Apache-2.0
#include "ops/common/softmax.hpp"
#include "ops/common/sums.hpp"

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

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0], &y = run.outputs[0];
  if (!dx[0].has_data()) return;
  for_softmax_rows("LogSoftmax", run.call, [&](std::int64_t at, std::int64_t length, std::int64_t step) {
    const float *slope = dy.as<const float>() + at, *from = y.as<const float>() + at;
    float *to = dx[0].as<float>() + at;
    const auto total = static_cast<float>(sum_of(length, [=](std::int64_t k) { return slope[k * step]; }));
    for (std::int64_t k = 0; k < length; ++k) to[k * step] = slope[k * step] - std::exp(from[k * step]) * total;
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
                        .backward = backward,
                        .keeps = {.outputs = true},
                        .upgrade = upgrade_softmax};

}  // namespace qtn::ops
